"""A TaskFlow task that hangs in Spark's Python worker until it is killed; its retry doesn't."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, AssetAlias, task

from airflow_provider_lancens.operators.taskflow import lance_spark
from tests.e2e.hanging import SMALL, hanging

WRITTEN = AssetAlias("written")


@task(outlets=[WRITTEN], retries=1, retry_delay=timedelta(0), execution_timeout=timedelta(hours=1))
def ingest(table: str, lance_conn_id: str, spark_conn_id: str, marker: str) -> dict[str, Any]:
    with lance_spark(lance_conn_id=lance_conn_id, spark_conn_id=spark_conn_id, spark_conf=SMALL) as lake:
        return lake.table(table).append(hanging(lake.spark, marker)).as_dict()


@task(inlets=[WRITTEN])
def emitted(*, inlet_events: Any) -> dict[str, Any]:
    """The extra of the asset's newest event."""
    extra: dict[str, Any] = inlet_events[WRITTEN][-1].extra
    return extra


NAMES = ("table", "lance_conn_id", "spark_conn_id", "marker")

with DAG(dag_id="killed_own", schedule=None, params=dict.fromkeys(NAMES, "")) as dag:
    ingest(**{name: f"{{{{ params.{name} }}}}" for name in NAMES}) >> emitted()
