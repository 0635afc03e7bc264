"""A task's own PySpark that hangs in Spark's worker, until the task is killed; the retry doesn't hang."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, AssetAlias, task

from airflow_provider_lancens.operators.spark_lake import lance_spark
from tests.e2e.hanging import SMALL, hanging

WRITTEN = AssetAlias("written")


@task(outlets=[WRITTEN], retries=1, retry_delay=timedelta(0), execution_timeout=timedelta(hours=1))
def ingest(table: str, lance_conn_id: str, spark_conn_id: str, marker: str) -> dict[str, Any]:
    with lance_spark(lance_conn_id=lance_conn_id, spark_conn_id=spark_conn_id, spark_conf=SMALL) as lake:
        written: dict[str, Any] = lake.write(hanging(lake.spark, marker), table)
    return written


@task(inlets=[WRITTEN])
def told(*, inlet_events: Any) -> dict[str, Any]:
    """What the asset's newest event carries."""
    extra: dict[str, Any] = inlet_events[WRITTEN][-1].extra
    return extra


NAMES = ("table", "lance_conn_id", "spark_conn_id", "marker")

with DAG(dag_id="killed_own", schedule=None, params=dict.fromkeys(NAMES, "")) as dag:
    ingest(**{name: f"{{{{ params.{name} }}}}" for name in NAMES}) >> told()
