"""Copy years of a partitioned Hive table to Lance by months: each run replaces one month.

The task compares the number of rows of both tables. A backfill of this DAG makes the runs; a month that was
corrected in Hive is brought again by clearing its run.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG, task

from airflow_provider_lancens.operators import LanceCreateNamespaceOperator, LanceDeclareTableOperator

LAKE = {"lance_conn_id": "lake"}


# [START howto_bring_hive_months]
@task.lance_spark(hive_tables=True, **LAKE)
def bring_month(day: str, lake: Any = None) -> dict[str, Any]:
    """Replace the month of a day by the Hive table's month, and compare the numbers of rows."""
    first = datetime.fromisoformat(day).replace(day=1)
    end = (first + timedelta(days=31)).replace(day=1)
    month = f"day >= '{first:%Y-%m-%d}' AND day < '{end:%Y-%m-%d}'"
    events, rows = lake.table("sales_lance.events"), lake.spark.table("sales.events").where(month)
    written = events.overwrite(rows, where=month)
    brought, expected = events.at(written.version).count_rows(filter=month), rows.count()
    if brought != expected:
        raise ValueError(f"{month}: {brought} rows were brought, and Hive has {expected}")
    return written.as_dict()


with DAG(
    dag_id="lance_bring_hive_months",
    schedule="@monthly",
    start_date=datetime(2023, 1, 1, tzinfo=UTC),
    end_date=datetime(2025, 12, 1, tzinfo=UTC),  # the last month that is copied
    catchup=False,
    max_active_runs=2,
    default_args={"retries": 2},
    tags=["lance", "example"],
    doc_md=__doc__,
) as dag:
    create = LanceCreateNamespaceOperator(task_id="create", namespace="sales_lance", **LAKE)
    declare = LanceDeclareTableOperator(
        task_id="declare", table="sales_lance.events", schema={"id": "bigint", "day": "date"}, **LAKE
    )
    create >> declare >> bring_month("{{ (dag_run.logical_date or dag_run.run_after) | ds }}")
# [END howto_bring_hive_months]
