"""Write, audit, publish: nobody reads rows before they are checked; those that fail are discarded."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, Param, task

from airflow_provider_lancens.assets import lance_table
from airflow_provider_lancens.operators import (
    LanceAppendOperator,
    LanceCreateNamespaceOperator,
    LanceDeclareTableOperator,
    LanceDiscardOperator,
    LancePublishOperator,
    lance_spark,
)

try:
    from airflow.sdk.exceptions import AirflowFailException
except ImportError:  # Airflow 3.1
    from airflow.exceptions import AirflowFailException

CONNECTION = "lake"
PAYMENTS = "ledger$payments"
SPARK = {"spark.master": "local[2]"}
CHECKS = {
    "amounts are positive": "SELECT count(*) FROM payments WHERE amount <= 0",
    "each payment is there once": "SELECT count(*) - count(DISTINCT payment) FROM payments",
}
"""Queries that count the rows in error, by what they check."""


def payments(spark: Any, day: int, errors: int) -> Any:
    """Return a day's payments, some of them with an error; here they are generated."""
    amount = f"if(id % 100 < {errors}, -1, 10 + id)"
    return spark.range(day * 100, day * 100 + 100).selectExpr(
        "id AS payment", f"cast({amount} AS decimal(9, 2)) AS amount"
    )


# [START howto_audit]
@task
def audit(staged: dict[str, Any]) -> dict[str, int]:
    """Fail if a check finds rows in error. The staged version is read like any other one."""
    with lance_spark(lance_conn_id=CONNECTION, spark_conf=SPARK) as lake:
        lake.table(staged).read().createOrReplaceTempView("payments")
        errors = {name: lake.spark.sql(query).first()[0] for name, query in CHECKS.items()}
    if any(errors.values()):
        raise AirflowFailException(f"version {staged['staged_version']} has rows in error: {errors}")
    return errors


# [END howto_audit]


with DAG(
    dag_id="lance_write_audit_publish",
    schedule=None,
    params={"day": Param(0, type="integer"), "errors": Param(0, type="integer")},
    render_template_as_native_obj=True,
    default_args={"retries": 2, "retry_delay": timedelta(seconds=30)},
    tags=["lance", "example"],
    doc_md=__doc__,
) as dag:
    given = {"lance_conn_id": CONNECTION}
    create = LanceCreateNamespaceOperator(task_id="create", namespace="ledger", **given)
    # With its columns, so that the first rows can be staged too.
    declare = LanceDeclareTableOperator(
        task_id="declare",
        table=PAYMENTS,
        schema={"payment": "bigint", "amount": "decimal(9, 2)"},
        **given,
    )
    # [START howto_stage]
    stage = LanceAppendOperator(
        task_id="stage",
        table=PAYMENTS,
        source=payments,
        op_kwargs={"day": "{{ params.day }}", "errors": "{{ params.errors }}"},
        stage=True,
        spark_conf=SPARK,
        **given,
    )
    audited = audit(stage.output)
    publish = LancePublishOperator(
        task_id="publish", staged=stage.output, outlets=[lance_table(PAYMENTS, CONNECTION)], **given
    )
    discard = LanceDiscardOperator(task_id="discard", staged=stage.output, trigger_rule="one_failed", **given)
    audited >> [publish, discard]
    # [END howto_stage]
    create >> declare >> stage
