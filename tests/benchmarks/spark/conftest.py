"""Generated data, and a Spark session with two cores."""

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_provider_lancens.spark.session import spark_session
from tests.benchmarks.spark import data

SCALE = float(os.environ.get("LANCENS_BENCHMARK_SCALE", "1"))
"""For a first try with less: the targets are for the full size."""
ROUNDS = int(os.environ.get("LANCENS_BENCHMARK_ROUNDS", "5"))
"""In which all ways are measured in turn."""
LINEITEM_ROWS, VECTORS = int(6_000_000 * SCALE), int(200_000 * SCALE)


@pytest.fixture(scope="session", autouse=True)
def every_compiler() -> Iterator[None]:
    """Use Java's optimizing compiler, as users do; the other tests disable it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("SPARK_SUBMIT_OPTS", raising=False)
        yield


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    logging.getLogger("py4j").setLevel(logging.WARNING)
    conf = {"spark.master": "local[2]", "spark.driver.memory": "4g"}
    with spark_session("benchmarks", conf) as session:
        session.sparkContext.setLogLevel("OFF")
        yield session


@pytest.fixture(scope="session")
def lineitem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return data.lineitem(tmp_path_factory.mktemp("lineitem"), LINEITEM_ROWS)


@pytest.fixture(scope="session")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return data.vectors(tmp_path_factory.mktemp("vectors"), VECTORS)
