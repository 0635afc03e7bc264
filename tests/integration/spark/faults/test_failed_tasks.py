"""Failed and retried Spark tasks: files may be left over, rows are never duplicated."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from lance_namespace import DescribeTableRequest
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from airflow_provider_lancens.spark import NamespaceSpec
from tests.support.spark_sessions import ATTEMPTS_OF_A_TASK
from tests.support.writes import write_table

pytestmark = pytest.mark.slow

Failure = Callable[[], None]


def raise_error() -> None:
    raise RuntimeError("this attempt fails")


def kill_worker() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def failing(fail: Failure, attempts: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A step that returns all its rows and then fails, in its first attempts."""

    def step(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        context = TaskContext.get()
        if context is not None and context.attemptNumber() < attempts:
            fail()

    return step


@pytest.mark.parametrize("fail", [pytest.param(raise_error, marks=pytest.mark.long), kill_worker])
def test_a_failed_and_retried_task_duplicates_nothing(
    spark: SparkSession,
    spec: NamespaceSpec,
    table: str,
    ids: Callable[..., list[int]],
    fail: Failure,
) -> None:
    step = failing(fail, attempts=ATTEMPTS_OF_A_TASK - 1)
    df = spark.range(0, 1000, 1, 2).mapInArrow(step, "id long")

    result = write_table(df, spec, table)

    assert (result.version, result.written, result.files) == (1, 1000, 2)
    assert ids() == list(range(1000))


def test_a_job_that_fails_for_good_commits_nothing(
    spark: SparkSession, spec: NamespaceSpec, table: str
) -> None:
    df = spark.range(0, 1000, 1, 2).mapInArrow(failing(raise_error, ATTEMPTS_OF_A_TASK), "id long")

    with pytest.raises(PySparkException, match="this attempt fails"):
        write_table(df, spec, table)

    location = spec.connect().describe_table(DescribeTableRequest(id=table.split("$"))).location
    assert not Path(location, "_versions").exists()
