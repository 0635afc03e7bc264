"""Correct a day of a table, compare it with the version before, and go back to that version.

Each run replaces the rows of one day and keeps the others, then restores the version that had been tagged.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, task

from airflow_provider_lancens.assets import lance_table
from airflow_provider_lancens.operators import (
    LanceCreateNamespaceOperator,
    LanceDeclareTableOperator,
    LanceFindVersionOperator,
    LanceOverwriteOperator,
    LanceRestoreOperator,
    LanceTagOperator,
    lance_spark,
)

CONNECTION = "lake"
SALES = "stores$sales"
SPARK = {"spark.master": "local[2]"}


def two_days(spark: Any) -> Any:
    """Return the sales of two days; here they are generated."""
    return spark.range(20).selectExpr("id", "date_add(date'2026-11-01', int(id % 2)) AS day", "1.5D AS price")


def corrected_day(spark: Any) -> Any:
    """Return the sales of the first of these days, with other prices."""
    return two_days(spark).where("day = '2026-11-01'").selectExpr("id", "day", "price * 2 AS price")


@task
def turnover(*versions: dict[str, Any]) -> list[float]:
    """Sum up the prices at each version."""
    with lance_spark(lance_conn_id=CONNECTION, spark_conf=SPARK) as lake:
        frames = [lake.table(version).read(columns=["price"]) for version in versions]
        return [frame.selectExpr("sum(price)").first()[0] for frame in frames]


with DAG(
    dag_id="lance_correct_and_restore",
    schedule=None,
    default_args={"lance_conn_id": CONNECTION, "retries": 2, "retry_delay": timedelta(seconds=30)},
    tags=["lance", "example"],
    doc_md=__doc__,
) as dag:
    create = LanceCreateNamespaceOperator(task_id="create", namespace="stores")
    declare = LanceDeclareTableOperator(task_id="declare", table=SALES)
    load = LanceOverwriteOperator(task_id="load", table=SALES, source=two_days, spark_conf=SPARK)
    tag = LanceTagOperator(
        task_id="tag",
        table=SALES,
        version=load.output["version"],
        location=load.output["location"],
        tag="loaded",
    )
    # [START howto_replace_a_part]
    correct = LanceOverwriteOperator(
        task_id="correct",
        table=SALES,
        source=corrected_day,
        where="day = '2026-11-01'",
        spark_conf=SPARK,
    )
    # [END howto_replace_a_part]
    # [START howto_find_version]
    before = LanceFindVersionOperator(task_id="before", table=SALES, version="loaded")
    compare = turnover(before.output, correct.output)
    # [END howto_find_version]
    # [START howto_restore]
    restore = LanceRestoreOperator(
        task_id="restore", table=SALES, version="loaded", outlets=[lance_table(SALES, CONNECTION)]
    )
    # [END howto_restore]
    create >> declare >> load >> tag >> correct >> before >> compare >> restore
