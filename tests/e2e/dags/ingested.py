"""An ingestion of a few rows, in a process of the scheduler."""

from __future__ import annotations

from typing import Any

from airflow.providers.openlineage.utils.selective_enable import enable_lineage
from airflow.sdk import DAG, AssetAlias

from airflow_provider_lancens.operators.ingest import LanceAppendOperator

SMALL = {"spark.master": "local[1]", "spark.driver.memory": "512m", "spark.ui.enabled": "false"}


def numbers(spark: Any) -> Any:
    return spark.range(10)


with DAG(dag_id="ingested", schedule=None, params={"table": ""}) as dag:
    LanceAppendOperator(
        task_id="ingest",
        table="{{ params.table }}",
        lance_conn_id="lake",
        source=numbers,
        spark_conf=SMALL,
        outlets=[AssetAlias("ingested")],
    )
enable_lineage(dag)
