"""Ingestion compared with the alternatives: Spark to Parquet, and one pylance process without Spark."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.benchmarks.figures import Figure
from tests.benchmarks.spark.write_variants import COMPARED, Ways
from tests.benchmarks.timing import interleaved
from tests.support.benchmark_sizes import LINEITEM_ROWS, ROUNDS, VECTORS

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def writes() -> Iterator[Figure]:
    """The figure of both kinds of data, kept when both are measured."""
    figure = Figure("writes", axis="kind of data")
    yield figure
    figure.save()


def test_rows_of_many_columns(
    spark: SparkSession, lineitem: Path, tmp_path: Path, show: Callable[..., None], writes: Figure
) -> None:
    times = interleaved(ROUNDS, Ways(spark, lineitem, tmp_path / "out").all(), warm_up=1)
    show("lineitem, 16 columns", times)
    writes.add_times(f"{LINEITEM_ROWS:,} rows of 16 columns", times, *COMPARED)

    assert times.ratio("direct", "parquet") <= 0.4
    assert times.ratio("frame", "parquet") <= 1
    assert times.ratio("direct", "pylance") <= 1.1


def test_vectors(
    spark: SparkSession, vectors: Path, tmp_path: Path, show: Callable[..., None], writes: Figure
) -> None:
    ways = Ways(spark, vectors, tmp_path / "out", vectors={"embedding": 768})
    times = interleaved(ROUNDS, ways.all(), warm_up=1)
    show("vectors, 768 float32", times)
    writes.add_times(f"{VECTORS:,} vectors of 768 floats", times, *COMPARED)

    assert times.ratio("direct", "parquet") <= 0.2
    assert times.ratio("frame", "parquet") <= 0.45
    assert times.ratio("direct", "pylance") < 1
