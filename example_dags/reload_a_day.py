"""Clear the task of a day, and its rows are replaced by what the source has now.

The retries of a task are one execution, so they write once; a task that is cleared writes again.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG

from airflow_provider_lancens.operators import LanceDeclareTableOperator, LanceOverwriteOperator

TABLE = {"table": "default$sales_by_day", "lance_conn_id": "lake"}
DAY = "{{ (dag_run.logical_date or dag_run.run_after) | ds }}"


def sales_of(spark: Any, day: str) -> Any:
    """Return the sales of a day; here they are generated."""
    return spark.range(24).selectExpr(f"DATE '{day}' AS day", "id AS hour", "1.5D AS price")


with DAG(
    dag_id="lance_reload_a_day",
    schedule="@daily",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    default_args={"retries": 2, "retry_delay": timedelta(seconds=30)},
    tags=["lance", "example"],
    doc_md=__doc__,
) as dag:
    declare = LanceDeclareTableOperator(task_id="declare", **TABLE)
    # [START howto_reload]
    load = LanceOverwriteOperator(
        task_id="load",
        source=sales_of,
        op_kwargs={"day": DAY},
        where=f"day = '{DAY}'",
        spark_conf={"spark.master": "local[2]"},
        **TABLE,
    )
    # [END howto_reload]
    declare >> load
