"""Copy Hive tables of the connection's own metastore to Lance: once as a whole, and day by day.

Spark reads them with `hive_tables=True`, in whatever format they are; the columns of their partitions are
columns of the Lance tables. The Lance tables are in a database of their own, since table names are
unique in a database of Hive.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from airflow.sdk import DAG, task

from airflow_provider_lancens.operators import (
    LanceCreateNamespaceOperator,
    LanceDeclareTableOperator,
    LanceOverwriteOperator,
)

LAKE = {"lance_conn_id": "lake"}


# [START howto_bring_hive_table]
def rows_of(spark: Any, table: str) -> Any:
    """Return all rows of a Hive table."""
    return spark.table(table)


# [END howto_bring_hive_table]


# [START howto_bring_hive_day]
@task.lance_spark(hive_tables=True, **LAKE)
def bring_day(day: str, lake: Any = None) -> dict[str, Any]:
    """Replace a day by the same day of the Hive table; Spark reads only its partition."""
    events = lake.spark.table("sales.events").where(f"day = DATE '{day}'")
    return lake.table("sales_lance.events").overwrite(events, where=f"day = '{day}'").as_dict()


# [END howto_bring_hive_day]


with DAG(
    dag_id="lance_bring_hive_tables",
    schedule="@daily",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    default_args={"retries": 2},
    tags=["lance", "example"],
    doc_md=__doc__,
) as dag:
    create = LanceCreateNamespaceOperator(task_id="create", namespace="sales_lance", **LAKE)
    declare = LanceDeclareTableOperator(
        task_id="declare", table=["sales_lance.orders", "sales_lance.events"], **LAKE
    )
    # [START howto_bring_hive_operator]
    bring_orders = LanceOverwriteOperator(
        task_id="bring_orders",
        source=rows_of,
        op_kwargs={"table": "sales.orders"},
        table="sales_lance.orders",
        hive_tables=True,
        **LAKE,
    )
    # [END howto_bring_hive_operator]
    # The run of a midnight brings the day that has ended.
    day = "{{ ((dag_run.logical_date or dag_run.run_after) - macros.timedelta(days=1)) | ds }}"
    create >> declare >> [bring_orders, bring_day(day)]
