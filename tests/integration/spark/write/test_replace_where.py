"""An overwrite with `where` replaces only the rows that match, in one commit."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from lance_namespace import DescribeTableRequest
from lance_namespace.errors import ConcurrentModificationError, InvalidInputError
from pyspark.sql import DataFrame, SparkSession

from airflow_provider_lancens.spark import FileSource, NamespaceSpec, TableLayout
from tests.integration.spark.row_ids import BOTH_KINDS
from tests.support.writes import write_files, write_table

pytestmark = pytest.mark.slow

FIRST, SECOND = "day = '2026-11-01'", "day = '2026-11-02'"
Days = Callable[[], list[tuple[int, int]]]


def flights(spark: SparkSession, *rows: tuple[int | None, int]) -> DataFrame:
    """Rows of a day in November, and an id."""
    text = [(None if day is None else f"2026-11-{day:02}", number) for day, number in rows]
    return spark.createDataFrame(text, "d string, id long").selectExpr("cast(d as date) as day", "id")


@pytest.fixture(params=BOTH_KINDS)
def location(request: pytest.FixtureRequest, spark: SparkSession, spec: NamespaceSpec, table: str) -> str:
    """A table with two flights on the first day, and one on the second."""
    rows = flights(spark, (1, 10), (1, 11), (2, 20))
    write_table(rows, spec, table, options=TableLayout(stable_row_ids=request.param))
    return str(spec.connect().describe_table(DescribeTableRequest(id=[table])).location)


@pytest.fixture
def empty(spec: NamespaceSpec, table: str) -> str:
    """The location of the table without data."""
    return str(spec.connect().describe_table(DescribeTableRequest(id=[table])).location)


@pytest.fixture
def days(location: str) -> Days:
    def read() -> list[tuple[int, int]]:
        rows = lance.dataset(location).to_table().to_pylist()
        return sorted((row["day"].day, row["id"]) for row in rows)

    return read


def test_only_the_rows_that_match_are_replaced(
    spark: SparkSession, spec: NamespaceSpec, table: str, location: str, days: Days
) -> None:
    lance.dataset(location).create_scalar_index("id", "BTREE")

    result = write_table(flights(spark, (1, 12)), spec, table, mode="overwrite", where=FIRST)

    assert days() == [(1, 12), (2, 20)]
    assert (result.written, result.version, result.previous_version) == (1, 3, 2)
    dataset = lance.dataset(location)
    assert [index.name for index in dataset.describe_indices()] == ["id_idx"]
    assert dataset.to_table(filter="id = 12").num_rows == 1
    assert dataset.to_table(filter="id = 10").num_rows == 0


@pytest.mark.parametrize("way", ["frame", "files"])
def test_the_rows_of_the_days_that_occur_are_replaced(
    spark: SparkSession, spec: NamespaceSpec, table: str, location: str, days: Days, tmp_path: Path, way: str
) -> None:
    lance.dataset(location).create_scalar_index("day", "BTREE")
    rows = flights(spark, (2, 21), (3, 30), (2, 22))
    how: Any = {"mode": "overwrite", "on": ["day"]}

    if way == "frame":
        result = write_table(rows, spec, table, **how)
    else:
        pq.write_table(pa.Table.from_pandas(rows.toPandas()), tmp_path / "days.parquet")
        source = FileSource("parquet", str(tmp_path / "days.parquet"))
        result = write_files(spark, source, spec, table, **how)

    assert (result.written, result.version) == (3, 3)
    assert days() == [(1, 10), (1, 11), (2, 21), (2, 22), (3, 30)]
    by_index = lance.dataset(location).to_table(filter="day = date '2026-11-02'")
    assert sorted(by_index["id"].to_pylist()) == [21, 22]


@pytest.mark.thorough
def test_files_replace_the_rows_that_match(
    spark: SparkSession, spec: NamespaceSpec, table: str, days: Days, tmp_path: Path
) -> None:
    rows = flights(spark, (2, 21), (2, 22)).toPandas()
    pq.write_table(pa.Table.from_pandas(rows), tmp_path / "day.parquet")
    source = FileSource("parquet", str(tmp_path / "day.parquet"))

    write_files(spark, source, spec, table, mode="overwrite", where=SECOND)

    assert days() == [(1, 10), (1, 11), (2, 21), (2, 22)]


@pytest.mark.thorough
def test_new_columns_of_the_rows_are_merged(
    spark: SparkSession, spec: NamespaceSpec, table: str, location: str, days: Days
) -> None:
    rows = flights(spark, (1, 12)).selectExpr("*", "'late' AS status")

    write_table(rows, spec, table, mode="overwrite", where=FIRST, schema_mode="merge")

    assert days() == [(1, 12), (2, 20)]
    found = lance.dataset(location).to_table().to_pylist()
    assert {row["id"]: row["status"] for row in found} == {12: "late", 20: None}


@pytest.mark.thorough
def test_no_rows_delete_those_that_match(
    spark: SparkSession, spec: NamespaceSpec, table: str, days: Days
) -> None:
    result = write_table(flights(spark), spec, table, mode="overwrite", where=FIRST)

    assert days() == [(2, 20)]
    assert result.is_done


@pytest.mark.thorough
def test_the_first_write_needs_only_matching_rows(
    spark: SparkSession, spec: NamespaceSpec, table: str
) -> None:
    result = write_table(flights(spark, (1, 1)), spec, table, mode="overwrite", where=FIRST)

    assert (result.version, result.written) == (1, 1)


@pytest.mark.thorough
@pytest.mark.parametrize("day", [2, None], ids=["another day", "null"])
def test_rows_that_do_not_match_are_refused(
    spark: SparkSession, spec: NamespaceSpec, table: str, location: str, day: int | None
) -> None:
    rows = flights(spark, (1, 12), (day, 13))

    with pytest.raises(InvalidInputError, match=r"where: rows that don't match .*(11, 2\)|None)"):
        write_table(rows, spec, table, mode="overwrite", where=FIRST)

    assert lance.dataset(location).version == 1


@pytest.mark.thorough
def test_nan_is_the_greatest_number_of_old_and_of_new_rows(
    spark: SparkSession, spec: NamespaceSpec, table: str, empty: str
) -> None:
    write_table(
        spark.sql("SELECT 1 id, double('NaN') p UNION ALL SELECT 2, 3 UNION ALL SELECT 3, 1"), spec, table
    )

    nan = spark.sql("SELECT 4 id, double('NaN') p UNION ALL SELECT 5, 1")
    with pytest.raises(InvalidInputError, match=r"where: rows that don't match 'NOT \(p > 2\)'.*nan"):
        write_table(nan, spec, table, mode="overwrite", where="NOT (p > 2)")
    write_table(spark.sql("SELECT 6 id, 1D p"), spec, table, mode="overwrite", where="NOT (p > 2)")
    assert sorted(lance.dataset(empty).to_table()["id"].to_pylist()) == [1, 2, 6]

    write_table(spark.sql("SELECT 7 id, double('NaN') p"), spec, table, mode="overwrite", where="p > 2")
    assert sorted(lance.dataset(empty).to_table()["id"].to_pylist()) == [6, 7]


@pytest.mark.thorough
@pytest.mark.parametrize("condition", ["at >= '2026-11-01T22:30:00Z'", "at >= '2026-11-01 23:30:00'"])
def test_times_of_a_column_in_a_named_zone_are_moments(
    spark: SparkSession, spec: NamespaceSpec, table: str, empty: str, condition: str
) -> None:
    start = datetime(2026, 11, 1, 20, tzinfo=UTC)
    hours = pa.array([start + timedelta(hours=hour) for hour in range(6)], pa.timestamp("us", "Europe/Paris"))
    lance.write_dataset(pa.table({"id": list(range(6)), "at": hours}), empty)

    new = spark.sql("SELECT 100L id, timestamp'2026-11-01 23:30:00Z' at")
    write_table(new, spec, table, mode="overwrite", where=condition)
    assert sorted(lance.dataset(empty).to_table()["id"].to_pylist()) == [0, 1, 2, 100]

    early = spark.sql("SELECT 101L id, timestamp'2026-11-01 22:29:59Z' at")
    with pytest.raises(InvalidInputError, match="where: rows that don't match"):
        write_table(early, spec, table, mode="overwrite", where=condition)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mode": "append", "where": FIRST}, "not allowed for an append, only for an overwrite"),
        ({"mode": "overwrite", "where": " "}, "expected a condition"),
        ({"mode": "overwrite", "where": FIRST, "schema_mode": "overwrite"}, "expected strict"),
        ({"mode": "overwrite", "where": "month = 1"}, "month"),
        ({"mode": "overwrite", "where": "day ="}, "incomplete"),
    ],
)
def test_an_invalid_condition_is_refused_before_any_work(
    spark: SparkSession,
    spec: NamespaceSpec,
    table: str,
    location: str,
    arguments: dict[str, Any],
    message: str,
) -> None:
    with pytest.raises(InvalidInputError, match=f"(where|schema_mode): .*{message}"):
        write_table(flights(spark, (1, 1)), spec, table, **arguments)

    assert lance.dataset(location).version == 1


@pytest.mark.thorough
def test_a_rerun_replaces_once_and_corrected_rows_replace_again(
    spark: SparkSession, spec: NamespaceSpec, table: str, days: Days
) -> None:
    def write(number: int, **changed: Any) -> bool:
        rows = flights(spark, (1, number))
        arguments = {"key": "first", "fingerprint": str(number), **changed}
        return write_table(rows, spec, table, mode="overwrite", where=FIRST, **arguments).is_done

    assert write(12)
    write_table(flights(spark, (1, 13), (2, 23)), spec, table)
    assert not write(12, on_existing_key="skip")
    assert not write(12, on_existing_key="redo_if_changed")
    with pytest.raises(InvalidInputError, match="different data"):
        write(14, on_existing_key="skip")
    assert days() == [(1, 12), (1, 13), (2, 20), (2, 23)]

    assert write(14, on_existing_key="redo_if_changed")
    assert days() == [(1, 14), (2, 20), (2, 23)]
    write_table(flights(spark, (1, 15), (2, 24)), spec, table)
    assert write(14)
    assert days() == [(1, 14), (2, 20), (2, 23), (2, 24)]


@pytest.mark.thorough
@pytest.mark.parametrize("other_day", [1, 2])
def test_only_matching_rows_written_meanwhile_conflict(
    spark: SparkSession, spec: NamespaceSpec, table: str, location: str, days: Days, other_day: int
) -> None:
    def rows_of_another_writer(batches: Any) -> Any:
        other = pa.table({"day": [f"2026-11-0{other_day}"], "id": [99]})
        schema = lance.dataset(location).schema
        other = pa.table({"day": other["day"].cast(pa.date32()), "id": other["id"]}, schema=schema)
        lance.write_dataset(other, location, mode="append")
        yield from batches

    rows = flights(spark, (1, 12)).coalesce(1).mapInArrow(rows_of_another_writer, "day date, id long")

    if other_day == 1:
        with pytest.raises(ConcurrentModificationError, match="other writers wrote rows where `day` ="):
            write_table(rows, spec, table, mode="overwrite", where=FIRST)
        assert days() == [(1, 10), (1, 11), (1, 99), (2, 20)]
    else:
        write_table(rows, spec, table, mode="overwrite", where=FIRST)
        assert days() == [(1, 12), (2, 20), (2, 99)]
