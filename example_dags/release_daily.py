"""Release sets: two tables are ingested, released together, and joined at exactly the released versions.

Whoever reads the tables through the release set never sees the orders of today with the customers of
yesterday, whenever the two ingestions end.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG

from airflow_provider_lancens.operators import (
    LanceCreateNamespaceOperator,
    LanceDeclareTableOperator,
    LanceFindReleaseOperator,
    LanceOverwriteOperator,
    LanceReleaseOperator,
)
from airflow_provider_lancens.sensors import LanceTableVersionSensor

CONNECTION = "lake"
ORDERS, CUSTOMERS = "store$orders", "store$customers"
DAILY, SALES = "store$daily", "store$sales"
SPARK = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"}


def orders(spark: Any) -> Any:
    """Return the orders; here they are generated."""
    return spark.range(100).selectExpr(
        "id AS number", "id % 10 AS customer", "cast(1 + id % 7 AS double) AS amount"
    )


def customers(spark: Any) -> Any:
    """Return the customers."""
    return spark.range(10).selectExpr("id AS customer", "concat('customer ', id) AS name")


def sales(spark: Any, orders: Any, customers: Any) -> Any:  # noqa: ARG001 an argument of every source
    """Return the sales by customer."""
    return (
        orders.read().join(customers.read(), "customer").groupBy("name").sum("amount").toDF("name", "amount")
    )


with DAG(
    dag_id="lance_release_daily",
    schedule=None,
    max_active_runs=1,
    default_args={"retries": 2, "retry_delay": timedelta(seconds=30)},
    tags=["lance", "example"],
    doc_md=__doc__,
) as dag:
    given = {"lance_conn_id": CONNECTION}
    create = LanceCreateNamespaceOperator(task_id="create", namespace="store", **given)
    declare = LanceDeclareTableOperator.partial(task_id="declare", **given).expand(
        table=[ORDERS, CUSTOMERS, DAILY, SALES]
    )
    ingest = [
        LanceOverwriteOperator(task_id=source.__name__, table=table, source=source, spark_conf=SPARK, **given)
        for source, table in ((orders, ORDERS), (customers, CUSTOMERS))
    ]
    # [START howto_release_set]
    release = LanceReleaseOperator(
        task_id="release",
        release_set=DAILY,
        tables=[task.output for task in ingest],
        **given,
    )
    # [END howto_release_set]
    # [START howto_find_release_set]
    wait = LanceTableVersionSensor(
        task_id="wait", table=DAILY, min_version=release.output["version"], **given
    )
    find = LanceFindReleaseOperator(task_id="find", release_set=wait.output, **given)
    join = LanceOverwriteOperator(
        task_id="join",
        table=SALES,
        source=sales,
        inputs={"orders": find.output[ORDERS], "customers": find.output[CUSTOMERS]},
        spark_conf=SPARK,
        **given,
    )
    wait >> find >> join
    # [END howto_find_release_set]
    create >> declare >> ingest >> release >> wait
