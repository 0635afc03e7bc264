"""Ingestion compared with the alternatives: Spark to Parquet, and one pylance process without Spark."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.benchmarks.figures import Figure
from tests.benchmarks.spark import data
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


@pytest.mark.parametrize(("writer", "limit"), [("pyarrow", 0.4), ("Spark", 0.35)])
def test_rows_of_many_columns(
    spark: SparkSession,
    tmp_path: Path,
    show: Callable[..., None],
    writes: Figure,
    writer: str,
    limit: float,
) -> None:
    source = data.lineitem(tmp_path / "source", LINEITEM_ROWS, as_spark=writer == "Spark")
    times = interleaved(ROUNDS, Ways(spark, source, tmp_path / "out").all(), warm_up=1)
    show(f"lineitem, 16 columns, decimals as {writer} stores them", times)
    writes.add_times(f"{LINEITEM_ROWS:,} rows of 16 columns, from {writer}", times, *COMPARED)

    assert times.ratio("direct", "parquet") <= limit
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
