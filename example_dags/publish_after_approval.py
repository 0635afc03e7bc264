"""Publish after approval: rows are staged, and a person decides in Airflow's UI whether anyone reads them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.hitl import HITLBranchOperator
from airflow.sdk import DAG

from airflow_provider_lancens.assets import lance_table
from airflow_provider_lancens.operators import (
    LanceAppendOperator,
    LanceCreateNamespaceOperator,
    LanceDeclareTableOperator,
    LanceDiscardOperator,
    LancePublishOperator,
)

CONNECTION = "lake"
PRICES = "catalog$prices"
SPARK = {"spark.master": "local[2]"}


def prices(spark: Any) -> Any:
    """Return the new prices; here they are generated."""
    return spark.range(100).selectExpr("id AS product", "cast(10 + id AS decimal(9, 2)) AS price")


with DAG(
    dag_id="lance_publish_after_approval",
    schedule=None,
    default_args={"retries": 2, "retry_delay": timedelta(seconds=30)},
    tags=["lance", "example"],
    doc_md=__doc__,
) as dag:
    given = {"lance_conn_id": CONNECTION}
    create = LanceCreateNamespaceOperator(task_id="create", namespace="catalog", **given)
    declare = LanceDeclareTableOperator(
        task_id="declare",
        table=PRICES,
        schema={"product": "bigint", "price": "decimal(9, 2)"},
        **given,
    )
    # [START howto_approve]
    stage = LanceAppendOperator(
        task_id="stage", table=PRICES, source=prices, stage=True, spark_conf=SPARK, **given
    )
    decide = HITLBranchOperator(
        task_id="decide",
        subject="New prices",
        body="{{ ti.xcom_pull('stage')['inserted'] }} prices are staged as version "
        "{{ ti.xcom_pull('stage')['staged_version'] }} of the table.",
        options=["Publish", "Discard"],
        options_mapping={"Publish": "publish", "Discard": "discard"},
    )
    publish = LancePublishOperator(
        task_id="publish", staged=stage.output, outlets=[lance_table(PRICES, CONNECTION)], **given
    )
    discard = LanceDiscardOperator(task_id="discard", staged=stage.output, **given)
    stage >> decide >> [publish, discard]
    # [END howto_approve]
    create >> declare >> stage
