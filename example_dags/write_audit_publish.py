"""Write, audit, publish: nobody reads rows before they are checked; rows that fail are discarded."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.providers.common.sql.operators.sql import SQLColumnCheckOperator, SQLTableCheckOperator
from airflow.sdk import DAG, Param

from airflow_provider_lancens.assets import lance_table
from airflow_provider_lancens.operators import (
    LanceAppendOperator,
    LanceCreateNamespaceOperator,
    LanceDeclareTableOperator,
    LanceDiscardOperator,
    LancePublishOperator,
)

CONNECTION = "lake"
PAYMENTS = "ledger$payments"
SPARK = {"spark.master": "local[2]"}


def payments(spark: Any, day: int, errors: int) -> Any:
    """Return a day's payments, some of them with an error; here they are generated."""
    amount = f"if(id % 100 < {errors}, -1, 10 + id)"
    return spark.range(day * 100, day * 100 + 100).selectExpr(
        "id AS payment", f"cast({amount} AS decimal(9, 2)) AS amount"
    )


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
    # [START howto_audit]
    # In these checks, `staged` is the version that was staged.
    checked = {
        "conn_id": CONNECTION,
        "table": "staged",
        "hook_params": {"tables": {"staged": stage.output}},
        "retry_on_failure": False,  # the same version fails again
    }
    check_columns = SQLColumnCheckOperator(
        task_id="check_columns",
        column_mapping={
            "payment": {"null_check": {"equal_to": 0}, "unique_check": {"equal_to": 0}},
            "amount": {"min": {"greater_than": 0}},
        },
        **checked,
    )
    check_table = SQLTableCheckOperator(
        task_id="check_table",
        checks={"has_rows": {"check_statement": "count(*) > 0"}},
        **checked,
    )
    # [END howto_audit]
    publish = LancePublishOperator(
        task_id="publish", staged=stage.output, outlets=[lance_table(PAYMENTS, CONNECTION)], **given
    )
    discard = LanceDiscardOperator(task_id="discard", staged=stage.output, trigger_rule="one_failed", **given)
    [check_columns, check_table] >> publish
    [check_columns, check_table] >> discard
    # [END howto_stage]
    create >> declare >> stage
