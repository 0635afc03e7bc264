"""Writes keep the columns that the catalog table describes up to date; a failure to do so is only logged."""

import logging
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from lance_namespace import CreateNamespaceRequest, DeclareTableRequest
from pyspark.sql import DataFrame, SparkSession

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.namespace import Hive2Namespace
from airflow_provider_lancens.spark import NamespaceSpec
from airflow_provider_lancens.spark.maintenance.restore import restore_version
from tests.integration.embedded.calls import connected
from tests.support.writes import write_table

pytestmark = pytest.mark.slow


@pytest.fixture(params=["storage", "impl"])
def lake(request: pytest.FixtureRequest, metastore: MetastoreServer, database: str, tmp_path: Path) -> Any:
    """A namespace with a declared table, and the table."""
    properties = {"uri": metastore.uri, "root": str(tmp_path)}
    with closing(Hive2Namespace(**properties)) as namespace:
        namespace.create_namespace(CreateNamespaceRequest(id=[database]))
        declared = DeclareTableRequest(id=[database, "t"], properties={"managed_by": request.param})
        namespace.declare_table(declared)
        impl = "airflow_provider_lancens.namespace.Hive2Namespace"
        yield NamespaceSpec(impl, properties), f"{database}$t"


def described(table: str, metastore: MetastoreServer) -> dict[str, str]:
    """The columns that another client, with a connection of its own, reads."""
    database, name = table.split("$")
    with connected(metastore.uri) as client:
        return {column.name: column.type for column in client.get_table(database, name).sd.cols}


def frame(spark: SparkSession, sql: str) -> DataFrame:
    return spark.sql(f"SELECT {sql}")


def test_the_first_write_an_overwrite_and_a_restore_are_described(
    spark: SparkSession, lake: Any, metastore: MetastoreServer
) -> None:
    spec, table = lake

    write_table(frame(spark, "1 AS id, array(1D) AS v"), spec, table)
    assert described(table, metastore) == {"id": "int", "v": "array<double>"}
    write_table(frame(spark, "'a' AS name"), spec, table, mode="overwrite", schema_mode="overwrite")
    assert described(table, metastore) == {"name": "string"}
    restore_version(spec, table, 1)
    assert described(table, metastore) == {"id": "int", "v": "array<double>"}


def test_columns_that_cannot_be_described_are_written_and_logged(
    spark: SparkSession, lake: Any, metastore: MetastoreServer, caplog: pytest.LogCaptureFixture
) -> None:
    spec, table = lake
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with caplog.at_level(logging.WARNING):
            result = write_table(spark.createDataFrame([(1, 2)], "a int, A int"), spec, table)
    finally:
        spark.conf.unset("spark.sql.caseSensitive")

    assert (result.is_done, result.written) == (True, 1)
    assert "catalog table could not be updated with its columns" in caplog.text
    assert "differ only in case" in caplog.text
    assert described(table, metastore) == {}
