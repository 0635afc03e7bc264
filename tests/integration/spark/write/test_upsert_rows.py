"""Upserts that keep, delete or update a part of what is there, or write only what is later."""

from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from lance_namespace import DescribeTableRequest
from lance_namespace.errors import ConcurrentModificationError, InvalidInputError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udf

from airflow_provider_lancens.spark import FileSource, NamespaceSpec, TableLayout
from tests.integration.spark.row_ids import BOTH_KINDS
from tests.support.writes import write_files, write_table

pytestmark = pytest.mark.slow

Prices = Callable[[], dict[int, tuple[int | None, str]]]
Row = tuple[int, int | None, str]


def rows(spark: SparkSession, *values: Row) -> DataFrame:
    """Rows of an id, the time of the change, and a price."""
    return spark.createDataFrame(list(values), "id long, at int, price string")


@pytest.fixture(params=BOTH_KINDS)
def location(request: pytest.FixtureRequest, spark: SparkSession, spec: NamespaceSpec, table: str) -> str:
    """A table with three rows, changed at the times 10 and 20 and at none."""
    frame = rows(spark, (1, 10, "a"), (2, 20, "b"), (3, None, "c"))
    write_table(frame, spec, table, options=TableLayout(stable_row_ids=request.param))
    return str(spec.connect().describe_table(DescribeTableRequest(id=[table])).location)


@pytest.fixture
def prices(location: str) -> Prices:
    def read() -> dict[int, tuple[int | None, str]]:
        found = lance.dataset(location).to_table().to_pylist()
        assert len(found) == len({row["id"] for row in found})
        return {row["id"]: (row["at"], row["price"]) for row in found}

    return read


@pytest.fixture
def upsert(spec: NamespaceSpec, table: str) -> Callable[..., Any]:
    def write(frame: DataFrame, **how: Any) -> Any:
        return write_table(frame, spec, table, mode="upsert", on=["id"], **how)

    return write


@pytest.mark.thorough
def test_rows_that_exist_are_kept_and_others_are_added(
    spark: SparkSession, upsert: Any, prices: Prices
) -> None:
    result = upsert(rows(spark, (1, 99, "new"), (4, 99, "d")), when_matched="keep")

    assert prices() == {1: (10, "a"), 2: (20, "b"), 3: (None, "c"), 4: (99, "d")}
    assert (result.written, result.version) == (1, 2)


@pytest.mark.thorough
def test_nothing_is_committed_if_all_rows_exist(spark: SparkSession, upsert: Any, prices: Prices) -> None:
    result = upsert(rows(spark, (1, 99, "new")), when_matched="keep")

    assert (result.is_done, result.version) == (False, 1)


@pytest.mark.thorough
def test_only_later_rows_replace_those_of_the_table(spark: SparkSession, upsert: Any, prices: Prices) -> None:
    newer = (1, 11, "later"), (2, 20, "same time"), (3, 1, "had no time"), (4, None, "added")
    result = upsert(rows(spark, *newer), sequence_by="at")

    assert prices() == {1: (11, "later"), 2: (20, "b"), 3: (1, "had no time"), 4: (None, "added")}
    assert result.written == 3


@pytest.mark.thorough
def test_the_last_of_several_rows_of_a_key_is_written(
    spark: SparkSession, upsert: Any, prices: Prices
) -> None:
    upsert(rows(spark, (1, 12, "x"), (1, 30, "last"), (1, None, "y"), (9, 1, "n")), sequence_by="at")

    assert prices()[1] == (30, "last")
    assert prices()[9] == (1, "n")


@pytest.mark.thorough
def test_rows_of_a_key_without_an_order_are_refused(spark: SparkSession, upsert: Any, prices: Prices) -> None:
    with pytest.raises(InvalidInputError, match="in more than one row of the source"):
        upsert(rows(spark, (1, 30, "x"), (1, 30, "y")), sequence_by="at")
    assert prices()[1] == (10, "a")


@pytest.mark.thorough
def test_the_first_write_needs_no_table_to_compare_with(
    spark: SparkSession, spec: NamespaceSpec, table: str
) -> None:
    frame = rows(spark, (1, 1, "x"), (1, 2, "y"))
    result = write_table(frame, spec, table, mode="upsert", on=["id"], sequence_by="at", when_matched="keep")

    assert (result.version, result.written) == (1, 1)


def changes(spark: SparkSession, *values: tuple[int, int | None, str | None, str]) -> DataFrame:
    """Rows with the kind of each change, as change data capture delivers them."""
    return spark.createDataFrame(list(values), "id long, at int, price string, op string")


def test_the_source_says_which_rows_are_deleted(
    spark: SparkSession, upsert: Any, prices: Prices, capfd: pytest.CaptureFixture[str]
) -> None:
    result = upsert(
        changes(spark, (1, 99, None, "D"), (2, 99, "new", "U"), (4, 99, "d", "I"), (9, 99, None, "D")),
        delete_when="op = 'D'",
    )

    assert prices() == {2: (99, "new"), 3: (None, "c"), 4: (99, "d")}
    assert (result.written, result.version) == (2, 2)
    assert result.changes == {"inserted": 1, "updated": 1, "deleted": 1}
    assert "ERROR" not in capfd.readouterr().err  # PySpark logs failed queries, and one is expected to fail


@pytest.mark.thorough
def test_an_upsert_may_only_delete(spark: SparkSession, upsert: Any, prices: Prices) -> None:
    how = {"delete_when": "op = 'D'", "key": "k", "execution_id": "1"}
    result, again = (upsert(changes(spark, (1, 99, None, "D")), **how) for _ in range(2))

    assert prices() == {2: (20, "b"), 3: (None, "c")}
    assert (result.written, result.version, again.is_done, again.version) == (0, 2, False, 2)
    assert result.changes == {"inserted": 0, "updated": 0, "deleted": 1}
    assert "with 0 rows, 0 files, 0 bytes, 1 deleted" in str(result)


@pytest.mark.thorough
def test_the_last_change_of_a_key_decides(spark: SparkSession, upsert: Any, prices: Prices) -> None:
    log = changes(
        spark,
        (1, 11, "x", "U"),
        (1, 12, None, "D"),
        (2, 19, None, "D"),
        (3, 1, None, "D"),
        (3, 2, "back", "I"),
        (4, 1, "d", "I"),
        (4, 2, None, "D"),
    )
    upsert(log, sequence_by="at", delete_when="op = 'D'")

    assert prices() == {2: (20, "b"), 3: (2, "back")}


@pytest.mark.thorough
def test_a_key_that_is_deleted_and_written_is_refused(
    spark: SparkSession, upsert: Any, prices: Prices
) -> None:
    with pytest.raises(InvalidInputError, match="1 keys are in more than one row of the source"):
        upsert(changes(spark, (1, 1, "x", "U"), (1, 1, None, "D")), delete_when="op = 'D'")
    assert prices()[1] == (10, "a")


@pytest.mark.thorough
def test_columns_are_merged_without_that_of_the_condition(
    spark: SparkSession, upsert: Any, location: str, prices: Prices
) -> None:
    upsert(
        changes(spark, (1, 99, None, "D"), (2, 99, "new", "U")).selectExpr("*", "'EUR' AS currency"),
        delete_when="op = 'D'",
        schema_mode="merge",
    )

    assert prices() == {2: (99, "new"), 3: (None, "c")}
    assert lance.dataset(location).schema.names == ["id", "at", "price", "currency"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "key_type", ["string", "date", "timestamp", "decimal(20, 3)", "binary", "double", "boolean"]
)
def test_keys_of_any_type_are_deleted(
    spark: SparkSession, spec: NamespaceSpec, table: str, key_type: str
) -> None:
    values = {"date": "date'2026-01-02'", "timestamp": "timestamp'2026-01-02 03:04:05'", "boolean": "true"}
    key = values.get(key_type, "'7'" if key_type in ("string", "binary") else "7")
    frame = spark.sql(f"SELECT cast({key} AS {key_type}) AS k, 1 AS n")
    write_table(frame, spec, table)

    how: dict[str, Any] = {"mode": "upsert", "on": ["k"], "delete_when": "gone"}
    write_table(frame.selectExpr("k", "n", "true AS gone"), spec, table, **how)

    location = spec.connect().describe_table(DescribeTableRequest(id=[table])).location
    assert lance.dataset(location).count_rows() == 0


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("zone", "midnight"),
    [("Asia/Tokyo", "2026-01-01T15:00:00Z"), ("America/New_York", "2026-01-02T05:00:00Z")],
)
def test_a_deleted_day_is_its_midnight_in_the_zone_of_the_session(
    spark: SparkSession, spec: NamespaceSpec, table: str, zone: str, midnight: str
) -> None:
    keys = [f"timestamp'{at}'" for at in (midnight, "2026-01-02T00:00:00Z")]
    write_table(
        spark.sql(f"SELECT {keys[0]} k, 'midnight' v UNION ALL SELECT {keys[1]}, 'in UTC'"), spec, table
    )

    before = spark.conf.get("spark.sql.session.timeZone") or "UTC"
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        gone = spark.sql("SELECT date'2026-01-02' k, '' v, 'D' op")
        write_table(gone, spec, table, mode="upsert", on=["k"], delete_when="op = 'D'")
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)

    location = spec.connect().describe_table(DescribeTableRequest(id=[table])).location
    assert lance.dataset(location).to_table()["v"].to_pylist() == ["in UTC"]


@pytest.mark.thorough
def test_only_some_columns_are_updated(spark: SparkSession, upsert: Any, prices: Prices) -> None:
    upsert(rows(spark, (1, 99, "new"), (4, 99, "d")), update_columns=["price"])

    assert prices() == {1: (10, "new"), 2: (20, "b"), 3: (None, "c"), 4: (99, "d")}


@pytest.mark.thorough
def test_all_columns_but_the_keys_may_be_updated(spark: SparkSession, upsert: Any, prices: Prices) -> None:
    upsert(rows(spark, (1, 99, "new"), (4, 99, "d")), update_columns=["price", "at"])

    assert prices() == {1: (99, "new"), 2: (20, "b"), 3: (None, "c"), 4: (99, "d")}


@pytest.mark.thorough
def test_rows_may_lack_the_columns_that_are_not_updated(
    spark: SparkSession, upsert: Any, prices: Prices
) -> None:
    frame = spark.createDataFrame([("new", 1), ("d", 4)], "price string, id long")
    upsert(frame, update_columns=["price"])

    assert prices() == {1: (10, "new"), 2: (20, "b"), 3: (None, "c"), 4: (None, "d")}


@pytest.mark.thorough
@pytest.mark.parametrize(
    "how",
    [{"sequence_by": "at"}, {"when_matched": "keep"}, {"update_columns": ["price", "at"]}],
    ids=["later", "kept", "updated"],
)
@pytest.mark.parametrize("other", [1, 7], ids=["the same key", "another key"])
def test_only_rows_of_the_same_key_written_meanwhile_conflict(
    spark: SparkSession, location: str, upsert: Any, prices: Prices, how: dict[str, str], other: int
) -> None:
    def while_another_writer_appends(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        theirs = pa.table({"id": [other], "at": pa.array([50], pa.int32()), "price": ["theirs"]})
        lance.write_dataset(theirs, location, mode="append")
        yield from batches

    lance.dataset(location).delete("id = 1")
    frame = rows(spark, (1, 40, "mine")).coalesce(1)
    frame = frame.mapInArrow(while_another_writer_appends, frame.schema)

    if other == 1:
        with pytest.raises(ConcurrentModificationError, match="other writers wrote rows with the same id"):
            upsert(frame, **how)
        assert prices()[1] == (50, "theirs")
    else:
        upsert(frame, **how)
        assert (prices()[1], prices()[7]) == ((40, "mine"), (50, "theirs"))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("how", "message"),
    [
        (
            {"mode": "append", "sequence_by": "at"},
            "sequence_by: not allowed for an append, only for an upsert; got 'at'",
        ),
        ({"mode": "append", "delete_when": "true"}, "delete_when: not allowed for an append"),
        ({"delete_when": " "}, "delete_when: expected a condition, or None; got ' '"),
        ({"delete_when": "op = 'D'"}, "delete_when: no column 'op'; there are .*price"),
        ({"delete_when": "id ="}, "delete_when: incomplete after '='"),
        ({"update_columns": "price"}, "update_columns: expected a list of columns, or None; got 'price'"),
        ({"update_columns": ["id"]}, "update_columns: 'id' is a key column"),
        ({"update_columns": ["cost"]}, "update_columns: the rows have no column 'cost'"),
        ({"when_matched": "keep", "delete_when": "true"}, "when_matched='keep' contradicts delete_when"),
        ({"when_matched": "ignore"}, "when_matched: expected one of update, keep, got 'ignore'"),
        ({"sequence_by": " "}, "sequence_by: expected the name of a column"),
        ({"sequence_by": "when"}, "the rows have no column 'when'; columns: .*'at'"),
    ],
)
def test_invalid_arguments_are_refused(
    spark: SparkSession, spec: NamespaceSpec, table: str, how: dict[str, Any], message: str
) -> None:
    arguments = {"mode": "upsert", "on": ["id"], **how}
    if arguments["mode"] != "upsert":
        del arguments["on"]
    with pytest.raises(InvalidInputError, match=message):
        write_table(rows(spark, (1, 1, "x")), spec, table, **arguments)


@pytest.mark.parametrize("kind", ["map<string, int>", "array<struct<a: map<string, int>>>"])
def test_a_column_without_an_order_is_refused(
    spark: SparkSession, spec: NamespaceSpec, table: str, kind: str
) -> None:
    frame = spark.createDataFrame([(1, None)], f"id long, at {kind}")
    with pytest.raises(
        InvalidInputError, match=r"sequence_by: column 'at' is .*map<.*whose values have no order"
    ):
        write_table(frame, spec, table, mode="upsert", on=["id"], sequence_by="at")


@pytest.mark.parametrize("name", ["_lancens_deleted", "_lancens_position", "_lancens_0"])
def test_columns_named_like_those_of_a_comparison_are_written_and_not_compared(
    spark: SparkSession, spec: NamespaceSpec, table: str, name: str
) -> None:
    def frame(*values: tuple[int, int]) -> DataFrame:
        return spark.createDataFrame(list(values), f"id long, {name} int")

    write_table(frame((1, 5), (2, 6)), spec, table)
    write_table(frame((2, 7)), spec, table, mode="upsert", on=["id"])
    for how in ({"sequence_by": name}, {"delete_when": "id = 1"}, {"update_columns": [name]}):
        with pytest.raises(InvalidInputError, match=f"column '{name}': .* rename the column"):
            write_table(frame((1, 9)), spec, table, mode="upsert", on=["id"], **how)

    stored = spec.connect().describe_table(DescribeTableRequest(id=[table])).location
    found = lance.dataset(str(stored)).to_table().to_pylist()
    assert sorted((row["id"], row[name]) for row in found) == [(1, 5), (2, 7)]


@pytest.mark.thorough
def test_files_are_refused_with_what_to_do(spark: SparkSession, spec: NamespaceSpec, table: str) -> None:
    request = {"mode": "upsert", "on": ["id"], "sequence_by": "at"}
    with pytest.raises(TypeError, match="sequence_by"):
        write_files(spark, FileSource("parquet", "/nowhere"), spec, table, **request)  # type: ignore[arg-type]


@pytest.mark.thorough
def test_one_evaluation_decides_whether_a_row_is_written_or_deleted(
    spark: SparkSession, upsert: Any, prices: Prices, tmp_path: Path
) -> None:
    calls = tmp_path / "calls"

    @udf("string")
    def operation(_: Any) -> str:  # answers differently each time, as a clock or a changing source does
        with calls.open("a+") as file:
            file.write("x")
            return "D" if file.tell() == 1 else "U"

    frame = rows(spark, (1, 40, "new")).coalesce(1).withColumn("op", operation.asNondeterministic()("id"))
    result = upsert(frame, delete_when="op = 'D'")

    assert 1 not in prices()
    assert calls.read_text() == "x"
    assert result.written == 0


@pytest.mark.thorough
def test_a_source_that_is_replaced_after_it_was_read_is_read_once(
    spark: SparkSession, upsert: Any, prices: Prices, tmp_path: Path
) -> None:
    def land(*changes: tuple[int, str]) -> None:
        ids, operations = zip(*changes, strict=True)
        columns = {"id": ids, "at": pa.array([99] * len(ids), pa.int32()), "price": ["new"] * len(ids)}
        pq.write_table(pa.table({**columns, "op": operations}), tmp_path / "a.parquet")

    def while_another_batch_arrives(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        read = list(batches)
        land((2, "U"), (3, "D"))
        yield from read

    land((1, "D"), (4, "I"))
    frame = spark.read.parquet(str(tmp_path)).coalesce(1)
    result = upsert(frame.mapInArrow(while_another_batch_arrives, frame.schema), delete_when="op = 'D'")

    assert prices() == {2: (20, "b"), 3: (None, "c"), 4: (99, "new")}
    assert result.changes == {"inserted": 1, "updated": 0, "deleted": 1}


@pytest.mark.thorough
def test_a_struct_of_which_the_condition_names_a_field_is_written(
    spark: SparkSession, spec: NamespaceSpec, table: str
) -> None:
    how: dict[str, Any] = {"mode": "upsert", "on": ["id"], "delete_when": "meta.op = 'D'"}
    changes = "SELECT id, named_struct('op', if(id = {}, 'D', 'U'), 'by', 'me') meta FROM range(2)"
    for deleted, ids in ((9, [0, 1]), (1, [0])):
        write_table(spark.sql(changes.format(deleted)), spec, table, **how)

        location = spec.connect().describe_table(DescribeTableRequest(id=[table])).location
        stored = lance.dataset(location).to_table().sort_by("id")
        assert stored["id"].to_pylist() == ids
        assert [meta["by"] for meta in stored["meta"].to_pylist()] == ["me"] * len(ids)


@pytest.mark.thorough
def test_the_first_write_writes_all_columns_but_the_given_helpers(
    spark: SparkSession, spec: NamespaceSpec, table: str
) -> None:
    how: dict[str, Any] = {"mode": "upsert", "on": ["id"], "delete_when": "op = 'D' OR price < 0"}
    frame = spark.sql("SELECT 1L id, 10 price, 'U' op")
    write_table(frame, spec, table, helper_columns=["op"], **how)

    location = spec.connect().describe_table(DescribeTableRequest(id=[table])).location
    assert lance.dataset(location).schema.names == ["id", "price"]

    write_table(frame.selectExpr("*", "'x' AS extra"), spec, table, schema_mode="merge", **how)
    assert lance.dataset(location).schema.names == ["id", "price", "extra"]
    with pytest.raises(InvalidInputError, match="helper_columns: the rows have no column 'kind'"):
        write_table(frame, spec, table, helper_columns=["kind"], **how)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "how",
    [
        {"sequence_by": "TS"},
        {"when_matched": "keep"},
        {"update_columns": ["V", "ts"]},
        {"delete_when": "ts < 0"},
    ],
    ids=["sequence_by", "keep", "update_columns", "delete_when"],
)
def test_names_in_another_case_are_the_same_where_columns_are_merged(
    spark: SparkSession, spec: NamespaceSpec, table: str, how: dict[str, Any]
) -> None:
    write_table(spark.sql("SELECT 1 Id, 5 Ts, 'old' v"), spec, table)
    new = spark.sql("SELECT 1 id, 6 ts, 'new' V, 7 extra UNION ALL SELECT 2, 6, 'new', 8")
    write_table(new, spec, table, mode="upsert", on=["ID"], schema_mode="merge", **how)

    location = spec.connect().describe_table(DescribeTableRequest(id=[table])).location
    stored = lance.dataset(location).to_table().sort_by("Id")
    assert stored.column_names == ["Id", "Ts", "v", "extra"]
    assert stored["v"].to_pylist() == ["old" if how.get("when_matched") else "new", "new"]


@pytest.mark.thorough
def test_columns_that_spark_cannot_hold_stay_as_they_are(
    spark: SparkSession, spec: NamespaceSpec, table: str
) -> None:
    location = spec.connect().describe_table(DescribeTableRequest(id=[table])).location
    nanos = pa.array([1_700_000_000_123_456_789, 1], pa.timestamp("ns"))
    unsigned = pa.array([2**63, 1], pa.uint64())
    others = {
        "small": pa.array([255, 1], pa.uint8()),
        "half": pa.array([0.5, 1.0], pa.float32()).cast(pa.float16()),
        "clock": pa.array([1_500, 1], pa.time64("us")),
        "bytes": pa.array([b"ab", b"cd"], pa.binary(2)),
        "word": pa.array(["x", "y"]).dictionary_encode(),
        "large": pa.array([Decimal("1.25"), None], pa.decimal256(50, 2)),
    }
    stored = pa.table({"id": [1, 2], "price": [1.0, 2.0], "at": nanos, "n": unsigned, **others})
    lance.write_dataset(stored, location)

    update = spark.sql("SELECT 1L id, 9D price UNION ALL SELECT 3L, 3D")
    write_table(update, spec, table, mode="upsert", on=["id"], update_columns=["price"])

    found = lance.dataset(location).to_table().sort_by("id")
    assert found["price"].to_pylist() == [9.0, 2.0, 3.0]
    assert found["n"].to_pylist() == [2**63, 1, None]
    assert found["at"].cast(pa.int64()).to_pylist() == [1_700_000_000_123_456_789, 1, None]
    for name, values in others.items():
        assert found.schema.field(name).type == values.type
        assert found[name].to_pylist() == [*values.to_pylist(), None]


@pytest.mark.thorough
def test_a_key_with_nanoseconds_is_that_of_no_row_of_spark(
    spark: SparkSession, spec: NamespaceSpec, table: str
) -> None:
    location = spec.connect().describe_table(DescribeTableRequest(id=[table])).location
    keys = pa.array([1_500, 2_000], pa.timestamp("ns"))
    lance.write_dataset(pa.table({"k": keys, "v": ["nanos", "micros"]}), location)

    new = spark.sql("SELECT cast(timestamp_micros(id) AS timestamp_ntz) k, 'new' v FROM range(1, 3)")
    result = write_table(new, spec, table, mode="upsert", on=["k"], when_matched="keep")

    assert result.written == 1
    assert sorted(lance.dataset(location).to_table()["v"].to_pylist()) == ["micros", "nanos", "new"]


@pytest.mark.thorough
def test_keys_with_a_collation_are_refused(spark: SparkSession, spec: NamespaceSpec, table: str) -> None:
    if spark.version < "4":
        pytest.skip("no collations before Spark 4")
    frame = spark.sql("SELECT 'a' COLLATE UTF8_LCASE AS k, 1 v")

    message = r"column 'k' has the collation UTF8_LCASE, .*COLLATE UTF8_BINARY"
    with pytest.raises(InvalidInputError, match=message):
        write_table(frame, spec, table, mode="upsert", on=["k"])


@pytest.mark.thorough
def test_text_that_is_not_utf8_is_refused(spark: SparkSession, spec: NamespaceSpec, table: str) -> None:
    frame = spark.sql("SELECT 1 id, named_struct('s', cast(X'FF41' AS string)) v")

    with pytest.raises(InvalidInputError, match="row 1, column v: text that isn't UTF-8"):
        write_table(frame, spec, table)
