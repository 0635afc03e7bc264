"""A table as a stream: each row that it gains is read once, over restarts and compactions."""
# ruff: noqa: E402 an older PySpark is sorted out before what it can't import

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.pyspark_versions import has_stream_limits, need_data_sources

need_data_sources()

from airflow_provider_lancens.spark import NamespaceSpec
from airflow_provider_lancens.spark.commit.delete import delete_rows
from airflow_provider_lancens.spark.maintenance.compact import compact_table
from airflow_provider_lancens.spark.schema import add_columns
from tests.support.writes import write_table

pytestmark = pytest.mark.thorough
only_managed = pytest.mark.parametrize("managed_by", ["impl"], indirect=True)
both = pytest.mark.parametrize(
    "managed_by", ["impl", pytest.param("storage", marks=pytest.mark.long)], indirect=True
)


@dataclass
class Consumer:
    """A query that reads the table, and notes the rows of each micro-batch."""

    spark: SparkSession
    spec: NamespaceSpec
    table: str
    folder: Path
    batches: list[list[Any]] = field(default_factory=list)

    def write(self, start: int, end: int, files: int = 1) -> None:
        write_table(self.spark.range(start, end, 1, files), self.spec, self.table)

    def read(self, note: Callable[[DataFrame, int], None] | None = None, **options: Any) -> list[list[Any]]:
        """Read what is there; returns the rows of the micro-batches since the last call."""
        self.batches.clear()
        frame = self.spark.readStream.format("lake").option("table", self.table).options(**options).load()
        query = frame.writeStream.foreachBatch(note or self.note)
        query = query.option("checkpointLocation", str(self.folder)).trigger(availableNow=True)
        query.start().awaitTermination()
        return list(self.batches)

    def note(self, frame: DataFrame, epoch: int) -> None:
        self.batches.append(sorted(row[0] if len(row) == 1 else tuple(row) for row in frame.collect()))


@pytest.fixture
def consumer(spark: SparkSession, spec: NamespaceSpec, table: str, tmp_path: Path) -> Consumer:
    return Consumer(spark, spec, table, tmp_path / "checkpoint")


@both
@pytest.mark.long  # each change streams a table into another one
def test_the_table_is_read_first_and_then_what_is_appended(consumer: Consumer) -> None:
    consumer.write(0, 5, files=2)
    consumer.write(5, 7)
    assert [one for batch in consumer.read() for one in batch] == list(range(7))
    assert consumer.read() == []

    consumer.write(7, 9)
    consumer.write(9, 12)
    compact_table(consumer.spark, consumer.spec, consumer.table)
    consumer.write(12, 13)
    assert consumer.read() == [list(range(7, 13))]


@only_managed
@has_stream_limits
def test_a_micro_batch_has_at_most_as_many_rows_as_allowed(consumer: Consumer) -> None:
    for start in range(0, 40, 10):
        consumer.write(start, start + 10)
    batches = consumer.read(after_version=0, max_rows_per_batch=20)
    assert batches == [list(range(20)), list(range(20, 40))]


@only_managed
def test_a_micro_batch_that_failed_is_read_again(consumer: Consumer) -> None:
    consumer.write(0, 3)
    consumer.read()
    consumer.write(3, 6)

    def fail(frame: DataFrame, epoch: int) -> None:
        raise RuntimeError("the sink is down")

    with pytest.raises(PySparkException, match="the sink is down"):
        consumer.read(fail)
    compact_table(consumer.spark, consumer.spec, consumer.table)
    consumer.write(6, 9)
    # PySpark 4.1 ends with the repeated micro-batch, and the next run reads on.
    assert [*consumer.read(), *consumer.read()] == [[3, 4, 5], [6, 7, 8]]


@only_managed
@pytest.mark.long
def test_a_stream_starts_after_a_version_and_reads_some_columns(consumer: Consumer) -> None:
    consumer.write(0, 3)
    add_columns(consumer.spec, consumer.table, {"double": "bigint"})
    frame = consumer.spark.range(3, 9).selectExpr("id", "id * 2 as double")
    write_table(frame, consumer.spec, consumer.table)

    assert consumer.read(after_version=2, columns="double", filter="id > 4") == [[10, 12, 14, 16]]


@only_managed
@pytest.mark.long  # each change runs test_appended_stream
def test_changes_that_are_no_appends_fail_the_stream_or_are_passed_over(consumer: Consumer) -> None:
    consumer.write(0, 3)
    consumer.read()
    delete_rows(consumer.spec, consumer.table, "id = 1")
    consumer.write(3, 6)

    with pytest.raises(PySparkException, match=r"version 2 isn't an append .*skip_change_commits=true"):
        consumer.read()
    assert consumer.read(skip_change_commits="true") == [[3, 4, 5]]


@only_managed
def test_options_that_do_not_go_together_are_refused(consumer: Consumer) -> None:
    consumer.write(0, 3)
    reader = consumer.spark.read.format("lake").option("table", consumer.table)
    with pytest.raises(PySparkException, match=r"options: expected .*, got after_version"):
        reader.option("after_version", 1).load().collect()
    with pytest.raises(PySparkException, match=r"options: expected .*, got version"):
        consumer.read(version=1)
    with pytest.raises(PySparkException, match="skip_change_commits: expected true or false, got 'no'"):
        consumer.read(skip_change_commits="no")
    with pytest.raises(PySparkException, match="after_version: expected at most 1"):
        consumer.read(after_version=9)


@only_managed
def test_a_table_is_streamed_into_another_one(
    consumer: Consumer, spec: NamespaceSpec, tmp_path: Path
) -> None:
    from lance_namespace import DeclareTableRequest

    from tests.support.reads import read_table

    copy = f"{consumer.table.partition('$')[0]}$copy"
    spec.connect().declare_table(DeclareTableRequest(id=copy.split("$")))
    for start in range(0, 12, 4):
        consumer.write(start, start + 4)
        frame = consumer.spark.readStream.format("lake").option("table", consumer.table).load()
        writer = frame.writeStream.format("lake").option("table", copy).trigger(availableNow=True)
        writer.option("checkpointLocation", str(tmp_path / "copying")).start().awaitTermination()

    rows = read_table(consumer.spark, spec, copy).collect()
    assert sorted(row["id"] for row in rows) == list(range(12))
