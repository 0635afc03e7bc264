"""Rows written and read through connections of type ``lance``, by operators and in a task of its own."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import BaseOperator
from airflow.sdk.execution_time.context import OutletEventAccessors, set_current_context
from pyspark.sql import DataFrame, SparkSession

from airflow_provider_lancens.assets import lance_table
from airflow_provider_lancens.hooks import LanceHook
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.operators import LanceAppendOperator, lance_spark
from tests.servers.s3_credentials import TemporaryCredentials
from tests.servers.s3_double import S3Double
from tests.support.catalogs import KINDS, catalog_connection


@pytest.fixture(params=KINDS)
def lake(request: pytest.FixtureRequest, connect: Callable[..., str], tmp_path: Path) -> Iterator[str]:
    """The id of a connection of type ``lance``."""
    with catalog_connection(request.param, connect, tmp_path / "lake") as conn_id:
        yield conn_id


@pytest.fixture
def table(lake: str) -> str:
    """A declared table in a database."""
    catalog = LanceHook(lake).catalog()
    catalog.create_namespace("sales")
    return catalog.declare_table("sales.orders").name


def test_a_bucket_is_used_with_the_credentials_of_the_connection(
    connect: Callable[..., str], spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    with S3Double() as s3, caplog.at_level(logging.DEBUG):
        s3.credentials = TemporaryCredentials(3600)
        keys = s3.credentials.issue()
        del keys["expires_at_millis"]
        storage = {f"storage.{name}": value for name, value in {**s3.endpoint, **keys}.items()}
        connect(conn_type="lance", extra={"root": f"s3://{s3.bucket_name}/tables/", **storage})
        catalog = LanceHook("lake").catalog(spark=spark)
        catalog.create_namespace("sales")
        orders = catalog.declare_table("sales.orders")
        orders.append(numbers(spark, 5))

        assert orders.read().count() == 5
        assert orders.location.startswith(f"s3://{s3.bucket_name}/tables/")
        assert LanceHook("lake").table_status("sales.orders").version == 1
        assert LanceHook("lake").catalog().drop_table("sales.orders").is_done

    assert keys["aws_secret_access_key"] not in caplog.text


def numbers(spark: SparkSession, count: int) -> DataFrame:
    return spark.range(count).selectExpr("id AS n")


def test_rows_are_written_once_and_read_at_their_version(lake: str, table: str, spark: SparkSession) -> None:
    events = OutletEventAccessors()
    context: Any = {
        "ti": SimpleNamespace(dag_id="dag", task_id="append", map_index=-1, max_tries=0, try_number=1),
        "task": SimpleNamespace(task_id="append", dag=SimpleNamespace(has_task=lambda _one: True)),
        "run_id": "manual__1",
        "outlet_events": events,
    }

    def append(**arguments: Any) -> dict[str, Any]:
        operator = LanceAppendOperator(
            task_id="append", table=table, lance_conn_id=lake, source=numbers, **arguments
        )
        return dict(operator.execute(context))

    written = [append(op_kwargs={"count": 10}, key="january") for _ in range(2)]

    assert [(one["version"], one["outcome"] == "done") for one in written] == [(1, True), (1, False)]
    pinned = LanceHook(lake).table(written[0])
    append(op_kwargs={"count": 1}, key="february")
    assert pinned.count_rows() == 10
    assert LanceHook(lake).table(table).count_rows() == 11


def test_a_table_outside_of_a_database_has_an_asset(lake: str, spark: SparkSession) -> None:
    LanceHook(lake).catalog().declare_table("loose")
    asset = lance_table(TableId(("loose",)), lake)
    operator = LanceAppendOperator(
        task_id="append",
        table="loose",
        lance_conn_id=lake,
        source=numbers,
        op_kwargs={"count": 3},
        outlets=[asset],
    )
    events = OutletEventAccessors()
    context: Any = {
        "ti": SimpleNamespace(dag_id="dag", task_id="append", map_index=-1, max_tries=0, try_number=1),
        "task": SimpleNamespace(task_id="append", dag=SimpleNamespace(has_task=lambda _one: True)),
        "run_id": "manual__1",
        "outlet_events": events,
    }

    assert operator.execute(context)["version"] == 1
    assert events[asset].extra["version"] == 1


def test_a_task_of_its_own_writes_through_the_executors(lake: str, table: str, spark: SparkSession) -> None:
    instance = SimpleNamespace(dag_id="dag", task_id="own", map_index=-1, max_tries=0)
    instance.xcom_push = lambda _key, _value: None
    context: Any = {
        "ti": instance,
        "task": BaseOperator(task_id="own"),
        "run_id": "manual__1",
        "outlet_events": OutletEventAccessors(),
    }
    with set_current_context(context), lance_spark(lance_conn_id=lake) as opened:
        orders = opened.table("sales.orders")
        orders.append(numbers(opened.spark, 4))
        orders.upsert(numbers(opened.spark, 6), on=["n"])
        orders.delete("n = 0")
        found = sorted(row["n"] for row in orders.read().collect())

    assert found == [1, 2, 3, 4, 5]
    assert opened.list_tables("sales") == [table]
