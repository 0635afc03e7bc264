"""Ingestion compared with the alternatives: Spark to Parquet, and one pylance process without Spark."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.benchmarks.spark.write_variants import Ways
from tests.benchmarks.timing import interleaved

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

ROUNDS = 5


def test_rows_of_many_columns(
    spark: SparkSession, lineitem: Path, tmp_path: Path, show: Callable[..., None]
) -> None:
    times = interleaved(ROUNDS, Ways(spark, lineitem, tmp_path / "out").all(), warm_up=1)
    show("lineitem, 16 columns", times)

    assert times.ratio("direct", "parquet") <= 0.45
    assert times.ratio("frame", "parquet") <= 1.1
    assert times.ratio("direct", "pylance") <= 1.2


def test_vectors(spark: SparkSession, vectors: Path, tmp_path: Path, show: Callable[..., None]) -> None:
    ways = Ways(spark, vectors, tmp_path / "out", vectors={"embedding": 768})
    times = interleaved(ROUNDS, ways.all(), warm_up=1)
    show("vectors, 768 float32", times)

    assert times.ratio("direct", "parquet") <= 0.25
    assert times.ratio("frame", "parquet") <= 0.65
    assert times.ratio("direct", "pylance") < 1
