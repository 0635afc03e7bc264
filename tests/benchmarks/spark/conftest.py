"""Generated data, and a Spark session with two cores."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_provider_lancens.spark.session import spark_session
from tests.benchmarks.spark import data
from tests.support.benchmark_sizes import LINEITEM_ROWS, VECTORS


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
