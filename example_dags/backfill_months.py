"""Load years of history by month: each run replaces one month, so runs may be repeated, in any order.

A backfill of this DAG makes the runs; the daily load of the same table goes on beside it.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG

from airflow_provider_lancens.operators import LanceDeclareTableOperator, LanceOverwriteOperator

TABLE = {"table": "default$sales_by_month", "lance_conn_id": "lake"}
# [START howto_backfill]
MONTH = "{{ (dag_run.logical_date or dag_run.run_after).strftime('%Y-%m-01') }}"
NEXT_MONTH = (
    "{{ ((dag_run.logical_date or dag_run.run_after).replace(day=28) + macros.timedelta(days=4))"
    ".strftime('%Y-%m-01') }}"
)


def sales_between(spark: Any, first: str, end: str) -> Any:
    """Return the sales from a day on and before another one; here they are generated."""
    days = f"explode(sequence(DATE '{first}', DATE '{end}' - INTERVAL 1 DAY))"
    return spark.range(2).selectExpr("id AS shop", f"{days} AS day", "1.5D AS price")


with DAG(
    dag_id="lance_backfill_months",
    schedule="@monthly",
    start_date=datetime(2023, 1, 1, tzinfo=UTC),
    end_date=datetime(2025, 12, 1, tzinfo=UTC),  # the last month: no run replaces what daily loads write
    catchup=False,
    max_active_runs=4,
    default_args={"retries": 2, "retry_delay": timedelta(seconds=30)},
    tags=["lance", "example"],
    doc_md=__doc__,
) as dag:
    declare = LanceDeclareTableOperator(
        task_id="declare", schema={"shop": "bigint", "day": "date", "price": "double"}, **TABLE
    )
    load = LanceOverwriteOperator(
        task_id="load",
        source=sales_between,
        op_kwargs={"first": MONTH, "end": NEXT_MONTH},
        where=f"day >= '{MONTH}' AND day < '{NEXT_MONTH}'",
        spark_conf={"spark.master": "local[2]"},
        **TABLE,
    )
    declare >> load
# [END howto_backfill]
