"""Increments: recompute the days of a table whose rows have changed, rather than all of them.

Each run adds orders, of which some arrive late and some are canceled. Then it reads what has changed since
the bookmark of this DAG, and computes the revenue of these days alone.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, Param

from airflow_provider_lancens.operators import (
    LanceCreateNamespaceOperator,
    LanceDeclareTableOperator,
    LanceFindChangesOperator,
    LanceTagOperator,
    LanceUpsertOperator,
)

CONNECTION = "lake"
ORDERS, REVENUE = "shop$orders", "shop$revenue"
SPARK = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"}


def orders(spark: Any, day: int) -> Any:
    """Return the orders of a day, changes of the day before, and cancellations; here they are generated."""
    return spark.range(max(0, 100 * day - 10), 100 * day + 100).selectExpr(
        "id AS number",
        "DATE '2026-01-01' + cast(id DIV 100 AS int) AS day",
        f"cast(1 + id % 7 + {day} AS double) AS amount",
        f"id % 50 = {day} AS canceled",
    )


# [START howto_increment]
def revenue(spark: Any, orders: Any) -> Any:
    """Return the revenue of the days that changes touch, and whether a day has no orders any more."""
    days = orders.changes().read(columns=["day"]).select("day").distinct()
    query = """
        SELECT day, sum(amount) AS revenue, count(amount) = 0 AS is_empty
        FROM {days} LEFT JOIN {orders} USING (day)
        GROUP BY day
    """
    return spark.sql(query, days=days, orders=orders.read(columns=["day", "amount"]))


# [END howto_increment]


with DAG(
    dag_id="lance_increments",
    schedule=None,
    max_active_runs=1,
    params={"day": Param(0, type="integer")},
    render_template_as_native_obj=True,
    default_args={"retries": 2, "retry_delay": timedelta(seconds=30)},
    tags=["lance", "example"],
    doc_md=__doc__,
) as dag:
    given = {"lance_conn_id": CONNECTION}
    create = LanceCreateNamespaceOperator(task_id="create", namespace="shop", **given)
    declare = LanceDeclareTableOperator.partial(task_id="declare", **given).expand(table=[ORDERS, REVENUE])
    ingest = LanceUpsertOperator(
        task_id="ingest",
        table=ORDERS,
        source=orders,
        op_kwargs={"day": "{{ params.day }}"},
        on=["number"],
        delete_when="canceled",
        helper_columns=["canceled"],
        options={"stable_row_ids": True},  # which make all changes known
        spark_conf=SPARK,
        **given,
    )
    # [START howto_find_changes]
    changes = LanceFindChangesOperator(task_id="changes", table=ORDERS, bookmark="revenue", **given)
    compute = LanceUpsertOperator(
        task_id="compute",
        table=REVENUE,
        source=revenue,
        inputs={"orders": changes.output},
        on=["day"],
        delete_when="is_empty",
        helper_columns=["is_empty"],
        spark_conf=SPARK,
        **given,
    )
    move = LanceTagOperator(
        task_id="move",
        table=ORDERS,
        version=changes.output["version"],
        location=changes.output["location"],
        tag="revenue",
        expires_after=timedelta(days=30),  # so that the files aren't kept if this DAG is deleted
        **given,
    )
    changes >> compute >> move
    # [END howto_find_changes]
    create >> declare >> ingest >> changes
