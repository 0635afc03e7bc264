"""The run's Spark session, and tables to read and write."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace import DeclareTableRequest
from pyspark.sql import DataFrame, SparkSession

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.namespace import Hive2Namespace
from airflow_provider_lancens.spark import NamespaceSpec
from tests.integration.airflow.tables import Table
from tests.servers.spark import connect_server, standalone_cluster
from tests.support.reads import read_table
from tests.support.spark_sessions import ATTEMPTS_OF_A_TASK, spark

__all__ = ["spark"]


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a standalone cluster of two workers."""
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as url:
        yield url


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Spark Connect server that retries failed tasks."""
    retrying = {"spark.master": f"local[2,{ATTEMPTS_OF_A_TASK}]"}
    with connect_server(tmp_path_factory.mktemp("connect"), **retrying) as address:
        yield address


@pytest.fixture
def spec(tmp_path: Path) -> NamespaceSpec:
    """Lance's directory namespace, which needs no server."""
    return NamespaceSpec("dir", {"root": str(tmp_path)})


@pytest.fixture
def table(spec: NamespaceSpec) -> str:
    """A declared table without data."""
    spec.connect().declare_table(DeclareTableRequest(id=["orders"]))
    return "orders"


@pytest.fixture
def ids(spark: SparkSession, spec: NamespaceSpec, table: str) -> Callable[..., list[int]]:
    """Return the sorted column `id` of the table, by default at the newest version."""

    def read(version: int | None = None) -> list[int]:
        rows: DataFrame = read_table(spark, spec, table, version=version, columns=["id"])
        return sorted(row["id"] for row in rows.collect())

    return read


@pytest.fixture
def pinned_orders(metastore: MetastoreServer, database: str, tmp_path: Path) -> dict[str, Any]:
    """Arguments of an ingestion: a table, and orders pinned to version 1, two of which are cheap."""
    with closing(Hive2Namespace(uri=metastore.uri, root=str(tmp_path))) as namespace:
        orders, target = Table(namespace, database, "orders"), Table(namespace, database, "cheap")
        orders.declare()
        for prices in ([1, 2, 3, 4], [0]):
            rows = pa.table({"price": pa.array(prices, pa.decimal128(10, 2))})
            lance.write_dataset(rows, namespace_client=namespace, table_id=orders.id, mode="append")
        target.declare()
    return {"table": str(target), "inputs": {"orders": {"table": str(orders), "version": 1}}}
