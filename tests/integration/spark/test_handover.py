"""What Spark hands to Python at a time is bounded by bytes, and no row is changed by it."""

from collections.abc import Iterator
from functools import partial

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from airflow_provider_lancens.spark import handover
from airflow_provider_lancens.spark.handover import handed_over

pytestmark = pytest.mark.slow

BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
UNBOUNDED = str(2**31 - 1)
BOUND = 1_000_000


def sizes(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"rows": [batch.num_rows], "bytes": [batch.nbytes]})


def handed(frame: DataFrame) -> list[tuple[int, int]]:
    """Rows and bytes of each batch."""
    with handed_over(frame, sizes) as (filled, run):
        return [tuple(row) for row in filled.mapInArrow(run, "rows long, bytes long").collect()]


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small one, which small rows reach."""
    monkeypatch.setattr(handover, "BATCH_BYTES", BOUND)


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


def test_small_rows_come_as_many_at_a_time_as_spark_has_it(spark: SparkSession) -> None:
    frame = spark.range(0, 25_000, 1, 1).selectExpr("id", "'small' as words", "array(id) as numbers")

    assert [rows for rows, _ in handed(frame)] == [10_000, 10_000, 5_000]


def test_the_rows_are_the_same_whatever_their_columns_are_called(spark: SparkSession, bound: None) -> None:
    frame = spark.range(0, 300, 1, 2).selectExpr(
        "id as A",
        f"if(id % 3 = 0, null, concat(id, {text(9_000)})) as a",
        "id * 2 as `with ``quotes`` and space`",
        f"if(id % 2 = 0, struct(id as x, {text(5_000)} as y), null) as struct",
        "cast(id as decimal(20, 3)) as piece",
    )

    def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return batches

    with handed_over(frame, same) as (filled, run):
        came = filled.mapInArrow(run, frame.schema).collect()

    assert came == frame.collect()


def test_columns_whose_bytes_take_a_look_at_each_element_are_left_to_spark(spark: SparkSession) -> None:
    frame = spark.range(10).select(sql.create_map("id", "id").alias("map"))

    with handed_over(frame, sizes) as (filled, run):
        assert filled is frame
        assert run is sizes


def test_a_bound_of_the_session_s_own_holds(spark: SparkSession) -> None:
    frame = spark.range(10)
    spark.conf.set(BYTES, "1m")
    try:
        with handed_over(frame, sizes) as (filled, _):
            assert filled is frame
            assert spark.conf.get(BYTES) == "1m"
        assert spark.conf.get(BYTES) == "1m"
    finally:
        spark.conf.unset(BYTES)


def test_spark_adds_up_bytes_again_after_a_write_that_fails(spark: SparkSession) -> None:
    before = spark.conf.get(BYTES, None)

    def fails(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        raise ValueError("this write fails")

    with (
        pytest.raises(PySparkException, match="this write fails"),
        handed_over(spark.range(10), fails) as (frame, run),
    ):
        frame.mapInArrow(run, "id long").collect()

    assert spark.conf.get(BYTES, None) == before


def test_a_write_beside_another_leaves_the_bound_to_that_one(spark: SparkSession) -> None:
    begin = partial(handed_over, spark.range(10), sizes)

    with begin():
        with begin():
            pass
        assert spark.conf.get(BYTES) == UNBOUNDED
