"""Maintenance: delete rows, compact and index the rest, then remove old versions.

The DAG `lance_spark_pinned_read` fills the table: run it first.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG

from airflow_provider_lancens.operators import (
    LanceCleanUpVersionsOperator,
    LanceCompactTableOperator,
    LanceCreateIndexOperator,
    LanceDeleteOperator,
    LanceRemoveOrphansOperator,
)

CONNECTION = "lake"
DAY = "{{ (dag_run.logical_date or dag_run.run_after) | ds }}"
READINGS = "weather$readings"
SPARK = {"spark.master": "local[2]"}

with DAG(
    dag_id="lance_maintain_table",
    schedule=None,
    default_args={"lance_conn_id": CONNECTION, "retries": 2, "retry_delay": timedelta(seconds=30)},
    tags=["lance", "example"],
    doc_md=__doc__,
) as dag:
    # [START howto_maintain]
    delete_nights = LanceDeleteOperator(
        task_id="delete_nights", table=READINGS, where=f"hour < 6 AND day <= '{DAY}'"
    )
    compact = LanceCompactTableOperator(task_id="compact", table=READINGS, spark_conf=SPARK)
    index = LanceCreateIndexOperator(
        task_id="index",
        table=READINGS,
        column="day",
        index_type="BITMAP",
        if_exists="replace",
        spark_conf=SPARK,
    )
    clean_up = LanceCleanUpVersionsOperator(
        task_id="clean_up", table=READINGS, older_than=timedelta(days=7), keep_versions=10
    )
    remove_orphans = LanceRemoveOrphansOperator(task_id="remove_orphans", table=READINGS)
    delete_nights >> compact >> index >> clean_up >> remove_orphans
    # [END howto_maintain]
