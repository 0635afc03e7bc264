"""Rows with other columns than the table are merged into it, from DataFrames and files, in every mode."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace import DescribeTableRequest
from lance_namespace.errors import ConcurrentModificationError, TableSchemaValidationError
from pyspark.sql import SparkSession

from airflow_provider_lancens.spark import (
    FileSource,
    NamespaceSpec,
    TableLayout,
    WriteResult,
)
from airflow_provider_lancens.spark.commit.committer import Committer
from airflow_provider_lancens.spark.commit.schema_commits import SchemaCommits
from tests.integration.managed.commit_points import Point
from tests.integration.spark.faults.table_kinds import DIR, HIVE_MANAGED, HIVE_STORAGE, declare, spec_of
from tests.pyspark_versions import has_data_sources
from tests.support.writes import write_files, write_table

pytestmark = pytest.mark.thorough

BEFORE = (
    "SELECT 1 AS id, 1.5f AS price, named_struct('a', 1, 'b', 'x') AS s, array(named_struct('q', 1)) AS l"
)
ROWS = """SELECT named_struct('c', 7L, 'a', 5000000000) AS s, named_struct('x', 'new') AS n, 2.5d AS price,
    2L AS id, array(named_struct('w', 'v')) AS l"""
"""Wider (id, price, s.a), other nested fields (s, l), another column (n)."""
FIRST = {"id": 1, "price": 1.5, "s": {"a": 1, "b": "x", "c": None}, "l": [{"q": 1, "w": None}], "n": None}
SECOND = {
    "id": 2,
    "price": 2.5,
    "s": {"a": 5000000000, "b": None, "c": 7},
    "l": [{"q": None, "w": "v"}],
    "n": {"x": "new"},
}

Write = Callable[..., WriteResult]


@pytest.fixture
def kind() -> str:
    return DIR


@pytest.fixture
def spec(request: pytest.FixtureRequest, kind: str, tmp_path: Path) -> NamespaceSpec:
    return spec_of(kind, request, tmp_path)


@pytest.fixture
def table(spec: NamespaceSpec, database: str, kind: str) -> str:
    return declare(spec, database, kind)


@pytest.fixture
def write(spark: SparkSession, spec: NamespaceSpec, table: str, tmp_path: Path) -> Write:
    """Write the rows of a query, by default as a DataFrame."""

    def write(rows: str, way: str = "frame", **how: Any) -> WriteResult:
        if way == "frame":
            return write_table(spark.sql(rows), spec, table, **how)
        folder = str(tmp_path / f"{len(list(tmp_path.iterdir()))}")
        spark.sql(rows).write.parquet(folder)
        return write_files(spark, FileSource("parquet", folder), spec, table, **how)

    return write


def opened(spec: NamespaceSpec, table: str) -> lance.LanceDataset:
    found = spec.connect().describe_table(DescribeTableRequest(id=table.split("$")))
    return lance.dataset(found.location)


def content(spec: NamespaceSpec, table: str) -> list[dict[str, Any]]:
    return sorted(opened(spec, table).to_table().to_pylist(), key=lambda row: (row["id"] is None, row["id"]))


MODES: list[tuple[dict[str, Any], int, list[Any]]] = [
    ({"mode": "append"}, 4, [FIRST, SECOND]),
    ({"mode": "upsert", "on": ["id"]}, 4, [FIRST, SECOND]),
    ({"mode": "overwrite"}, 2, [SECOND]),
]


@pytest.mark.parametrize("kind", [HIVE_STORAGE, HIVE_MANAGED])
@pytest.mark.parametrize("way", ["frame", "files"])
@pytest.mark.parametrize(("how", "version", "expected"), MODES, ids=["append", "upsert", "overwrite"])
def test_columns_are_added_widened_and_filled(
    spec: NamespaceSpec,
    table: str,
    write: Write,
    caplog: pytest.LogCaptureFixture,
    way: str,
    how: dict[str, Any],
    version: int,
    expected: Sequence[dict[str, Any]],
) -> None:
    write(BEFORE)

    with caplog.at_level(logging.INFO):
        given = {"schema_mode": "merge", "key": "january", "execution_id": "1", **how}
        merged, again = (write(ROWS, way, **given) for _ in range(2))
        narrower = write("SELECT cast(3 as byte) AS id", way, schema_mode="merge", mode="append")

    nothing = {"price": None, "s": None, "l": None, "n": None}
    assert content(spec, table) == [*expected, {"id": 3, **nothing}]
    assert (merged.version, merged.previous_version, merged.is_done) == (version, version - 1, True)
    assert (again.version, again.is_done) == (version, False)
    assert narrower.version == version + 1  # the table has all of its columns
    assert "n (struct<x: string>)" in caplog.text
    if how["mode"] != "overwrite":
        assert "version 2 changed the columns: widens id from int32 to int64, price" in caplog.text
        assert "version 3 changed the columns: adds s.c (int64), l.item.w (string), n" in caplog.text


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ("SELECT 2 AS id, 'x' AS price, 1 AS n", "price is string, but float in the table"),
        ("SELECT 2 AS id, 1 AS `a.b`", r"column 'a.b': the name contains a dot"),
        ("SELECT 2 AS id, array() AS n", "n is list<item: null>, which has values without a type"),
    ],
)
def test_what_cannot_be_merged_is_refused_before_anything_is_written(
    spec: NamespaceSpec, table: str, write: Write, rows: str, reason: str
) -> None:
    write(BEFORE)

    with pytest.raises(Exception, match=reason):
        write(rows, schema_mode="merge")

    assert opened(spec, table).version == 1


def test_an_indexed_column_is_not_widened(spec: NamespaceSpec, table: str, write: Write) -> None:
    write(BEFORE)
    opened(spec, table).create_scalar_index("id", "BTREE")

    with pytest.raises(TableSchemaValidationError, match=r"would invalidate the indices id_idx \(id\)"):
        write("SELECT 2L AS id, 1 AS n", schema_mode="merge")

    write("SELECT 2 AS id, 1 AS n", schema_mode="merge")
    assert opened(spec, table).describe_indices()[0].name == "id_idx"


def test_a_key_that_was_committed_changes_no_columns(spec: NamespaceSpec, table: str, write: Write) -> None:
    january = {"key": "january", "execution_id": "1"}
    write(BEFORE, **january)

    found = write(f"SELECT *, 1 AS n FROM ({BEFORE})", schema_mode="merge", **january)

    assert (found.version, found.is_done) == (1, False)
    assert "n" not in opened(spec, table).schema.names


def test_a_write_that_replaces_rows_adds_columns_but_widens_none(
    spec: NamespaceSpec, table: str, write: Write
) -> None:
    """Once a column was rewritten, the rows to replace can't be identified."""
    how = {"key": "january", "on_existing_key": "redo", "schema_mode": "merge"}
    write("SELECT 1 AS id", key="december")
    write("SELECT 2 AS id", **how)

    write("SELECT 3 AS id, 'x' AS n", **how)
    with pytest.raises(TableSchemaValidationError, match="id is int64, but int32 in the table; the rows to"):
        write("SELECT 4L AS id, 5 AS m", **how)

    assert content(spec, table) == [{"id": 1, "n": None}, {"id": 3, "n": "x"}]
    assert opened(spec, table).version == 4


def test_names_match_as_in_the_session(
    spark: SparkSession, spec: NamespaceSpec, table: str, write: Write
) -> None:
    write("SELECT 1 AS id, named_struct('month', 1) AS s")
    rows = "SELECT 1L AS ID, named_struct('Month', 2) AS S, 7 AS n"

    write(rows, schema_mode="merge", mode="upsert", on=["ID"])
    with pytest.raises(TableSchemaValidationError, match="N is in the rows several times"):
        write("SELECT 1L AS id, 1 AS n, 2 AS N", schema_mode="merge")
    with pytest.raises(
        TableSchemaValidationError, match="ID is not in the table, and another column differs"
    ):
        write(rows, "files", schema_mode="merge")
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(TableSchemaValidationError, match="ID is not in the table"):
            write(rows, schema_mode="merge")
    finally:
        spark.conf.unset("spark.sql.caseSensitive")

    assert content(spec, table) == [{"id": 1, "s": {"month": 2}, "n": 7}]


def test_dates_and_vectors_are_converted_as_without_merging(
    spec: NamespaceSpec, table: str, write: Write
) -> None:
    write("SELECT timestamp'2026-01-01' AS at")
    options = TableLayout(vector_columns={"v": 2, "at": 3})

    write("SELECT date'2026-01-02' AS AT, array(1f, 2f) AS v", schema_mode="merge", options=options)

    found = opened(spec, table)
    assert found.schema.field("v").type == pa.list_(pa.float32(), 2)
    assert [str(at)[:10] for at in found.to_table()["at"].to_pylist()] == ["2026-01-01", "2026-01-02"]


@has_data_sources
@pytest.mark.long
def test_the_data_source_merges_too(
    spark: SparkSession, spec: NamespaceSpec, table: str, write: Write
) -> None:
    from airflow_provider_lancens.spark import lance_data_source

    write("SELECT 1 AS id")
    spark.dataSource.register(lance_data_source(spec, "lake"))

    rows = spark.sql("SELECT 2L AS id, 'x' AS n")
    rows.write.format("lake").options(table=table, schema_mode="merge").mode("append").save()

    assert content(spec, table) == [{"id": 1, "n": None}, {"id": 2, "n": "x"}]


@pytest.mark.parametrize("kind", [HIVE_STORAGE, HIVE_MANAGED])
def test_a_commit_between_the_plan_and_the_change_of_columns_is_kept(
    spec: NamespaceSpec, table: str, write: Write
) -> None:
    """The change is planned again on the version of the other writer, which added the same column."""
    write("SELECT 1 AS id")
    step = Point(SchemaCommits, "_commit", after=False, committed=False)

    with step.interrupted_by(lambda: write("SELECT 2 AS id, 5 AS n", schema_mode="merge")):
        write("SELECT 3 AS id, cast(6 as byte) AS n, 7 AS m", schema_mode="merge")

    expected = [(1, None, None), (2, 5, None), (3, 6, 7)]
    assert [(row["id"], row["n"], row["m"]) for row in content(spec, table)] == expected


def test_the_same_column_of_another_type_by_another_writer_is_refused(
    spec: NamespaceSpec, table: str, write: Write
) -> None:
    write("SELECT 1 AS id")
    step = Point(SchemaCommits, "_commit", after=False, committed=False)

    with (
        step.interrupted_by(lambda: write("SELECT 2 AS id, 5 AS n", schema_mode="merge")),
        pytest.raises(TableSchemaValidationError, match="n is string, but int32 in the table"),
    ):
        write("SELECT 3 AS id, 'x' AS n", schema_mode="merge")

    assert content(spec, table) == [{"id": 1, "n": None}, {"id": 2, "n": 5}]


@pytest.mark.parametrize(
    ("rows", "is_kept"),
    [("SELECT 2 AS id, 5 AS n", True), ("SELECT 2L AS id", False)],
    ids=["added", "widened"],
)
def test_rows_written_before_another_writer_changed_their_columns_are_never_lost(
    spec: NamespaceSpec, table: str, write: Write, rows: str, is_kept: bool
) -> None:
    """Lance would read null for values of a column that was converted meanwhile."""
    write("SELECT 1 AS id")
    step = Point(Committer, "commit", after=False, committed=False)

    with step.interrupted_by(lambda: write(rows, schema_mode="merge")):
        if is_kept:
            write("SELECT 3 AS id", key="january")
        else:
            with pytest.raises(ConcurrentModificationError, match="changed its columns"):
                write("SELECT 3 AS id", key="january")
    write("SELECT 3 AS id", key="january", schema_mode="merge")

    assert [row["id"] for row in content(spec, table)] == [1, 2, 3]
