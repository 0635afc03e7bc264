"""PySpark in a TaskFlow task: read tables at a version, and write once however often the task runs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, task

from airflow_provider_lancens import LanceCatalog
from airflow_provider_lancens.assets import lance_table
from airflow_provider_lancens.operators import (
    LanceCreateNamespaceOperator,
    LanceDeclareTableOperator,
    lance_spark,
)

CONNECTION = "lake"
TABLES = ("readings", "warm", "cold")
SPARK = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"}


# [START howto_spark_own_function]
@task.lance_spark(
    lance_conn_id=CONNECTION,
    spark_conf=SPARK,
    outlets=[lance_table("climate$warm", CONNECTION), lance_table("climate$cold", CONNECTION)],
)
def split(lake: LanceCatalog, readings: dict[str, Any]) -> dict[str, Any]:
    """Split one table into two, both from the same version."""
    frame = lake.table(readings).read(filter="celsius IS NOT NULL")
    warm = lake.table("climate.warm").overwrite(frame.where("celsius >= 15"))
    cold = lake.table("climate.cold").overwrite(frame.where("celsius < 15"))
    return {"warm": warm.as_dict(), "cold": cold.as_dict()}


# [END howto_spark_own_function]


@task
def collect() -> dict[str, Any]:
    """Return a day's readings; here they are generated."""
    with lance_spark(lance_conn_id=CONNECTION, spark_conf=SPARK) as lake:
        frame = lake.spark.range(24).selectExpr("id AS hour", "10 + id % 12 AS celsius")
        return lake.table("climate.readings").append(frame).as_dict()


with DAG(
    dag_id="lance_spark_own_function",
    schedule=None,
    default_args={"retries": 2, "retry_delay": timedelta(seconds=30)},
    tags=["lance", "example"],
    doc_md=__doc__,
) as dag:
    given = {"lance_conn_id": CONNECTION}
    create = LanceCreateNamespaceOperator(task_id="create", namespace="climate", **given)
    declared = [
        LanceDeclareTableOperator(task_id=f"declare_{name}", table=f"climate${name}", **given)
        for name in TABLES
    ]
    readings = collect()
    create >> declared >> readings
    split(readings=readings)
