"""What people do with tasks that write: clear them, mark them as success, reload a day."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, task

from airflow_provider_lancens.operators.ingest import LanceSparkIngestOperator
from airflow_provider_lancens.sensors.table_version_sensor import LanceTableVersionSensor

SMALL = {"spark.master": "local[1]", "spark.driver.memory": "512m", "spark.ui.enabled": "false"}
GIVEN = {"table": "{{ params.table }}", "lance_conn_id": "lake", "spark_conf": SMALL}


def rows_of(spark: Any, item: str) -> Any:
    return spark.range(10).selectExpr("id", f"'{item}' AS item")


def rows_in(spark: Any, file: str) -> Any:
    return spark.range(int(Path(file).read_text())).selectExpr("id", "'day' AS item")


with DAG(
    "mapped_gestures",
    schedule=None,
    params={"table": "", "list": ""},
    default_args={"retries": 2, "retry_delay": timedelta(seconds=1)},
) as mapped_gestures:

    @task
    def items(params: Any = None) -> list[dict[str, str]]:
        return [{"item": item} for item in Path(params["list"]).read_text().split()]

    LanceSparkIngestOperator.partial(task_id="load", source=rows_of, **GIVEN).expand(op_kwargs=items())

with DAG("reloaded_gestures", schedule=None, params={"table": "", "file": ""}) as reloaded_gestures:
    load = LanceSparkIngestOperator(
        task_id="load",
        source=rows_in,
        op_kwargs={"file": "{{ params.file }}"},
        mode="overwrite",
        replace_where="item = 'day'",
        on_existing_key="replace",
        **GIVEN,
    )
    wait = LanceTableVersionSensor(
        task_id="wait",
        table="{{ params.table }}",
        min_version=load.output["version"],
        lance_conn_id="lake",
        poke_interval=1,
    )

dag = mapped_gestures
