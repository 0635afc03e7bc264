"""Batches that Spark passes to Python are limited by bytes, without changes to rows."""

from collections.abc import Iterator
from functools import partial

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from airflow_provider_lancens.spark.write import batch_sizing
from airflow_provider_lancens.spark.write.batch_sizing import BATCH_BYTES, in_bounded_batches

pytestmark = pytest.mark.thorough

BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
VECTOR = pa.field("vector", pa.list_(pa.float32(), 3072))
UNBOUNDED = str(2**31 - 1)
BOUND = 1_000_000


def sizes(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"rows": [batch.num_rows], "bytes": [batch.nbytes]})


def handed(frame: DataFrame, *columns: pa.Field) -> list[tuple[int, int]]:
    """Rows and bytes of each batch, written to a table with these columns."""
    with in_bounded_batches(frame, sizes, {column.name: column for column in columns}) as (filled, run):
        return [tuple(row) for row in filled.mapInArrow(run, "rows long, bytes long").collect()]


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small limit, which small rows reach."""
    monkeypatch.setattr(batch_sizing, "BATCH_BYTES", BOUND)


def text(length: int) -> str:
    return f"repeat('x', {length})"


@pytest.mark.parametrize(
    "large",
    [
        f"{text(20_000)} as large",
        f"cast({text(20_000)} as binary) as large",
        "array_repeat(1.5f, 5000) as large",
        f"struct(id as number, {text(20_000)} as words) as large",
        # Every tenth row is large, some are null, and some empty.
        f"case id % 10 when 0 then {text(200_000)} when 1 then null else '' end as large",
    ],
    ids=["text", "binary", "array", "struct", "now-and-then"],
)
def test_a_batch_of_large_rows_has_few_of_them(spark: SparkSession, bound: None, large: str) -> None:
    batches = handed(spark.range(0, 1000, 1, 1).selectExpr("id", large))

    assert sum(rows for rows, _ in batches) == 1000
    assert len(batches) >= 20
    assert max(size for _, size in batches) < 1.5 * BOUND


def test_a_row_of_many_strings_is_sized_by_all_of_them(spark: SparkSession, bound: None) -> None:
    texts = [f"{text(200)} as c{number}" for number in range(250)]

    batches = handed(spark.range(0, 100, 1, 1).selectExpr("id", *texts))

    assert sum(rows for rows, _ in batches) == 100
    assert max(size for _, size in batches) < 1.5 * BOUND


@pytest.mark.parametrize("values", ["'text' as c{}", "id as c{}"], ids=["texts", "numbers"])
def test_rows_of_very_many_columns_are_left_to_spark(spark: SparkSession, values: str) -> None:
    frame = spark.range(1).selectExpr(*(values.format(number) for number in range(600)))

    with in_bounded_batches(frame, sizes, {}) as (filled, run):
        assert filled is frame
        assert run is sizes


def test_small_rows_use_sparks_batch_size(spark: SparkSession) -> None:
    frame = spark.range(0, 25_000, 1, 1).selectExpr("id", "'small' as words", "array(id) as numbers")

    assert [rows for rows, _ in handed(frame)] == [10_000, 10_000, 5_000]


def test_batches_of_vectors_have_twelve_megabytes(spark: SparkSession) -> None:
    frame = spark.range(0, 2_500, 1, 1).selectExpr("array_repeat(float(id), 3072) as vector")

    assert [rows for rows, _ in handed(frame, VECTOR)] == [1024, 1024, 452]
    assert spark.conf.get(ROWS) == "10000"


def test_vectors_larger_than_the_tables_are_bounded(spark: SparkSession) -> None:
    frame = spark.range(0, 30, 1, 1).selectExpr("array_repeat(float(id), 1000000) as vector")

    batches = handed(frame, VECTOR)

    assert sum(rows for rows, _ in batches) == 30
    assert max(size for _, size in batches) < 1.5 * BATCH_BYTES


def test_a_number_of_rows_set_in_the_session_is_kept(spark: SparkSession) -> None:
    frame = spark.range(0, 2_500, 1, 1).selectExpr("array_repeat(float(id), 3072) as vector")
    spark.conf.set(ROWS, "2000")
    try:
        assert [rows for rows, _ in handed(frame, VECTOR)] == [2000, 500]
        assert spark.conf.get(ROWS) == "2000"
    finally:
        spark.conf.unset(ROWS)


def test_rows_are_the_same_with_any_column_names(spark: SparkSession, bound: None) -> None:
    frame = spark.range(0, 300, 1, 2).selectExpr(
        "id as A",
        f"if(id % 3 = 0, null, concat(id, {text(9_000)})) as a",
        "id * 2 as `with ``quotes`` and space`",
        f"if(id % 2 = 0, struct(id as x, {text(5_000)} as y), null) as struct",
        "cast(id as decimal(20, 3)) as piece",
    )

    def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return batches

    with in_bounded_batches(frame, same, {}) as (filled, run):
        came = filled.mapInArrow(run, frame.schema).collect()

    assert came == frame.collect()


def test_columns_that_need_a_look_at_each_element_are_left_to_spark(spark: SparkSession) -> None:
    frame = spark.range(10).select(sql.create_map("id", "id").alias("map"))

    with in_bounded_batches(frame, sizes, {}) as (filled, run):
        assert filled is frame
        assert run is sizes


def test_a_batch_limit_set_in_the_session_is_kept(spark: SparkSession) -> None:
    frame = spark.range(10)
    spark.conf.set(BYTES, "1m")
    try:
        with in_bounded_batches(frame, sizes, {}) as (filled, _):
            assert filled is frame
            assert spark.conf.get(BYTES) == "1m"
        assert spark.conf.get(BYTES) == "1m"
    finally:
        spark.conf.unset(BYTES)


def test_sparks_batch_limit_is_restored_after_a_failed_write(spark: SparkSession) -> None:
    before = spark.conf.get(BYTES, None)

    def fails(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        raise ValueError("this write fails")

    with (
        pytest.raises(PySparkException, match="this write fails"),
        in_bounded_batches(spark.range(10), fails, {}) as (frame, run),
    ):
        frame.mapInArrow(run, "id long").collect()

    assert spark.conf.get(BYTES, None) == before


def test_a_concurrent_write_does_not_change_the_batch_limit(spark: SparkSession) -> None:
    begin = partial(in_bounded_batches, spark.range(10), sizes, {})

    with begin():
        with begin():
            pass
        assert spark.conf.get(BYTES) == UNBOUNDED
