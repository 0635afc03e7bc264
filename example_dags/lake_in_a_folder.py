"""A lake without a metastore: its tables are in a folder or a bucket, and nothing has to be started.

The connection has the type ``lance`` and a ``root``. Each day's readings replace the day's earlier ones, and
the next task reads exactly the version that the sensor has found.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from airflow.sdk import DAG, task

from airflow_provider_lancens.assets import lance_table
from airflow_provider_lancens.operators import (
    LanceCreateNamespaceOperator,
    LanceDeclareTableOperator,
    LanceOverwriteOperator,
)
from airflow_provider_lancens.sensors import LanceTableVersionSensor

# [START howto_folder]
TABLE = {"table": "weather.readings", "lance_conn_id": "folder"}
DAY = "{{ (dag_run.logical_date or dag_run.run_after) | ds }}"


def readings_of(spark: Any, day: str) -> Any:
    """Return a day's readings; here they are generated."""
    return spark.range(24).selectExpr(f"DATE '{day}' AS day", "id AS hour", "15 + id % 7 AS temperature")


@task
def warmest(found: dict[str, Any]) -> int:
    """Return the highest temperature of the version that was found."""
    from airflow_provider_lancens.hooks import LanceHook

    readings = LanceHook("folder").table(found)
    return max(readings.to_arrow(columns=["temperature"])["temperature"].to_pylist())


with DAG(
    dag_id="lance_lake_in_a_folder",
    schedule="@daily",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    default_args={"retries": 2},
    tags=["lance", "example"],
    doc_md=__doc__,
) as dag:
    create = LanceCreateNamespaceOperator(task_id="create", namespace="weather", lance_conn_id="folder")
    declare = LanceDeclareTableOperator(task_id="declare", **TABLE)
    ingest = LanceOverwriteOperator(
        task_id="ingest",
        source=readings_of,
        op_kwargs={"day": DAY},
        where=f"day = '{DAY}'",
        outlets=[lance_table(TABLE["table"], "folder")],
        **TABLE,
    )
    wait = LanceTableVersionSensor(task_id="wait", min_version=ingest.output["version"], **TABLE)
    create >> declare >> ingest >> wait
    warmest(wait.output)
# [END howto_folder]
