"""Spark ingestion, then a pinned read: the second job reads exactly the version that was waited for."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import TYPE_CHECKING

from airflow.sdk import DAG

from airflow_provider_lancens.operators import (
    LanceAppendOperator,
    LanceCreateNamespaceOperator,
    LanceDeclareTableOperator,
    LanceOverwriteOperator,
)
from airflow_provider_lancens.sensors import LanceTableVersionSensor

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from airflow_provider_lancens.spark import Table

CONNECTION = "lake"
READINGS, MEANS = "weather$readings", "weather$means"
POLL_SECONDS = float(os.environ.get("LANCE_EXAMPLE_POLL", "60"))
SPARK = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"}


# [START howto_spark_sources]
def readings_of(spark: SparkSession, day: str) -> DataFrame:
    """Return a day's readings; here they are generated, elsewhere `spark.read.parquet(...)`."""
    return spark.range(24).selectExpr(f"'{day}' AS day", "id AS hour", "10 + id % 12 AS celsius")


def means(_spark: SparkSession, readings: Table) -> DataFrame:
    """Return each day's mean of the readings at the given version."""
    return readings.read().groupBy("day").agg({"celsius": "mean"}).toDF("day", "celsius")


# [END howto_spark_sources]


with DAG(
    dag_id="lance_spark_pinned_read",
    schedule=None,
    default_args={"lance_conn_id": CONNECTION, "retries": 2, "retry_delay": timedelta(seconds=30)},
    tags=["lance", "example"],
    doc_md=__doc__,
) as dag:
    create = LanceCreateNamespaceOperator(task_id="create", namespace="weather")
    declared = [
        LanceDeclareTableOperator(task_id=f"declare_{name}", table=f"weather${name}")
        for name in ("readings", "means")
    ]
    # [START howto_spark_ingest]
    ingest = LanceAppendOperator(
        task_id="ingest",
        table=READINGS,
        source=readings_of,
        op_kwargs={"day": "{{ (dag_run.logical_date or dag_run.run_after) | ds }}"},
        spark_conf=SPARK,
    )
    # [END howto_spark_ingest]
    # [START howto_spark_read]
    wait = LanceTableVersionSensor(
        task_id="wait",
        table=READINGS,
        min_version=ingest.output["version"],
        poke_interval=POLL_SECONDS,
    )
    LanceOverwriteOperator(
        task_id="summarize",
        table=MEANS,
        source=means,
        inputs={"readings": wait.output},
        spark_conf=SPARK,
    )
    # [END howto_spark_read]
    create >> declared >> ingest
