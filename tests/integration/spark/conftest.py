"""One Spark session for the whole run, and tables to write to."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from lance_namespace import DeclareTableRequest
from pyspark.sql import DataFrame, SparkSession

from airflow_provider_lancens.spark import NamespaceSpec, read_table
from airflow_provider_lancens.spark.session import spark_session
from tests.servers.spark import connect_server, standalone_cluster

ATTEMPTS_OF_A_TASK = 3


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Two cores, and failed tasks are tried again, as on a cluster."""
    logging.getLogger("py4j").setLevel(logging.WARNING)  # it tells of every connection, even after the end
    conf = {"spark.master": f"local[2,{ATTEMPTS_OF_A_TASK}]", "spark.sql.shuffle.partitions": "2"}
    with spark_session("tests", conf) as session:
        session.sparkContext.setLogLevel("OFF")
        yield session


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a standalone cluster of two workers."""
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as url:
        yield url


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Spark Connect server, which runs failed tasks again."""
    retrying = {"spark.master": f"local[2,{ATTEMPTS_OF_A_TASK}]"}
    with connect_server(tmp_path_factory.mktemp("connect"), **retrying) as address:
        yield address


@pytest.fixture
def spec(tmp_path: Path) -> NamespaceSpec:
    """Lance's own namespace over a folder: no server needed."""
    return NamespaceSpec("dir", {"root": str(tmp_path)})


@pytest.fixture
def table(spec: NamespaceSpec) -> str:
    """A declared table that nothing was written to yet."""
    spec.connect().declare_table(DeclareTableRequest(id=["orders"]))
    return "orders"


@pytest.fixture
def ids(spark: SparkSession, spec: NamespaceSpec, table: str) -> Callable[..., list[int]]:
    """The `id` column of the table, sorted, at a version or the newest one."""

    def read(version: int | None = None) -> list[int]:
        rows: DataFrame = read_table(spark, spec, table, version=version, columns=["id"])
        return sorted(row["id"] for row in rows.collect())

    return read
