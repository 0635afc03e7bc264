"""A declared table in a real metastore, and the data source bound to it."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from lance_namespace import CreateNamespaceRequest, DeclareTableRequest
from pyspark.sql import DataFrame, SparkSession

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.spark import NamespaceSpec
from tests.pyspark_versions import SPARK_V_4_1_PLUS

Save = Callable[..., None]


Load = Callable[..., DataFrame]


@pytest.fixture(params=["storage", "impl"])
def managed_by(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def spec(metastore: MetastoreServer, tmp_path: Path, spark: SparkSession) -> NamespaceSpec:
    """A namespace on Hive Metastore; and the data source ``format("lake")``, unless PySpark is too old."""
    hive = "airflow_provider_lancens.namespace.Hive2Namespace"
    spec = NamespaceSpec(hive, {"uri": metastore.uri, "root": str(tmp_path)})
    if SPARK_V_4_1_PLUS:
        from airflow_provider_lancens.spark import lance_data_source

        spark.dataSource.register(lance_data_source(spec, "lake"))
    return spec


@pytest.fixture
def table(spec: NamespaceSpec, database: str, managed_by: str) -> str:
    namespace: Any = spec.connect()
    with closing(namespace):
        namespace.create_namespace(CreateNamespaceRequest(id=[database]))
        properties = {"managed_by": managed_by}
        namespace.declare_table(DeclareTableRequest(id=[database, "orders"], properties=properties))
    return f"{database}$orders"


@pytest.fixture
def load(spark: SparkSession, table: str) -> Load:
    def load(**options: Any) -> DataFrame:
        return spark.read.format("lake").option("table", table).options(**options).load()

    return load
