"""Columns that change: rows with new columns are merged into a table, and tasks change columns themselves."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG

from airflow_provider_lancens.operators import (
    LanceAlterTableOperator,
    LanceAppendOperator,
    LanceCreateNamespaceOperator,
    LanceDeclareTableOperator,
)

CONNECTION = "lake"
PARCELS = "post$parcels"
SPARK = {"spark.master": "local[2]"}


def parcels(spark: Any, *columns: str) -> Any:
    """Return parcels with these columns; here they are generated."""
    return spark.range(3).selectExpr("cast(id AS int) AS id", *columns)


def first_parcels(spark: Any) -> Any:
    """Return the parcels of the first month, which have a weight in whole kilograms."""
    return parcels(spark, "cast(1 + id AS int) AS kilos", "'van' AS carrier")


def later_parcels(spark: Any) -> Any:
    """Return the parcels of the second month: a wider weight, another column, and no carrier."""
    return parcels(spark, "5000000000 + id AS kilos", "named_struct('country', 'DE') AS recipient")


with DAG(
    dag_id="lance_schema_changes",
    schedule=None,
    default_args={"lance_conn_id": CONNECTION, "retries": 2, "retry_delay": timedelta(seconds=30)},
    tags=["lance", "example"],
    doc_md=__doc__,
) as dag:
    create = LanceCreateNamespaceOperator(task_id="create", namespace="post")
    declare = LanceDeclareTableOperator(task_id="declare", table=PARCELS)
    first = LanceAppendOperator(
        task_id="first",
        table=PARCELS,
        source=first_parcels,
        key="first",
        on_existing_key="skip",
        spark_conf=SPARK,
    )
    # [START howto_merge_columns]
    later = LanceAppendOperator(
        task_id="later",
        table=PARCELS,
        source=later_parcels,
        schema_mode="merge",
        key="later",
        on_existing_key="skip",
        spark_conf=SPARK,
    )
    # [END howto_merge_columns]
    # [START howto_change_columns]
    alter = LanceAlterTableOperator(
        task_id="alter",
        table=PARCELS,
        rename={"id": "parcel_id"},
        types={"parcel_id": "bigint"},
        add={"delivered_at": "timestamp", "embedding": "float[8]"},
        expressions={"grams": "kilos * 1000"},
        drop=["carrier"],
    )
    # [END howto_change_columns]
    create >> declare >> first >> later >> alter
