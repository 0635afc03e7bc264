"""An ingestion on a cluster, whose driver waits for a file."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG

from airflow_provider_lancens.operators.ingest import LanceAppendOperator
from tests.integration.spark.submit.ingestion_sources import held

with DAG(
    dag_id="held",
    schedule=None,
    params={"table": "", "folder": "", "spark_conf": {}},
    render_template_as_native_obj=True,
) as dag:
    LanceAppendOperator(
        task_id="ingest",
        table="{{ params.table }}",
        lance_conn_id="lake",
        spark_conn_id="yarn",
        source=held,
        op_kwargs={"folder": "{{ params.folder }}"},
        spark_conf="{{ params.spark_conf }}",
        retries=1,
        retry_delay=timedelta(0),
    )
