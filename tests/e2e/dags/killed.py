"""An ingestion that hangs in Spark's Python worker until its task is killed; its retry doesn't."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG

from airflow_provider_lancens.operators.ingest import LanceAppendOperator
from tests.e2e.hanging import SMALL, hanging

with DAG(
    dag_id="killed",
    schedule=None,
    params={"table": "db$t", "lance_conn_id": "lake", "spark_conn_id": "", "marker": "", "spark_conf": SMALL},
    render_template_as_native_obj=True,
) as dag:
    LanceAppendOperator(
        task_id="ingest",
        table="{{ params.table }}",
        lance_conn_id="{{ params.lance_conn_id }}",
        spark_conn_id="{{ params.spark_conn_id }}",
        source=hanging,
        op_kwargs={"marker": "{{ params.marker }}"},
        spark_conf="{{ params.spark_conf }}",
        retries=1,
        retry_delay=timedelta(0),
        execution_timeout=timedelta(hours=1),
    )
