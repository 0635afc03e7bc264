"""Maintenance every hour that starts Spark only when that is due.

The DAG `lance_spark_pinned_read` fills the table: run it first.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG

from airflow_provider_lancens.operators import LanceMaintainOperator

CONNECTION = "lake"
READINGS = "weather$readings"
SPARK = {"spark.master": "local[2]"}

with DAG(
    dag_id="lance_maintain_hourly",
    schedule="@hourly",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args={"lance_conn_id": CONNECTION, "retries": 2, "retry_delay": timedelta(seconds=30)},
    tags=["lance", "example"],
    doc_md=__doc__,
) as dag:
    # [START howto_maintain_hourly]
    LanceMaintainOperator(
        task_id="maintain",
        table=READINGS,
        indices=[{"column": "day", "index_type": "BITMAP"}],
        older_than=timedelta(days=7),
        keep_versions=10,
        min_small_fragments=20,
        spark_conf=SPARK,
    )
    # [END howto_maintain_hourly]
