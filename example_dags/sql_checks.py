"""Airflow's own SQL operators on a table: one version for all checks, and a comparison with another one."""

from __future__ import annotations

from airflow.providers.common.sql.operators.sql import (
    SQLCheckOperator,
    SQLExecuteQueryOperator,
    SQLThresholdCheckOperator,
    SQLValueCheckOperator,
)
from airflow.sdk import DAG

from airflow_provider_lancens.sensors import LanceTableVersionSensor

CONNECTION = "lake"

with DAG(
    dag_id="lance_sql_checks",
    schedule=None,
    default_args={"conn_id": CONNECTION, "retry_on_failure": False},
    tags=["lance", "example"],
    doc_md=__doc__,
) as dag:
    # [START howto_sql_newest]
    # Without a version, a task reads the version that is newest when it starts.
    some_rows = SQLCheckOperator(task_id="some_rows", sql="SELECT count(*) FROM ledger.payments")
    # [END howto_sql_newest]

    # [START howto_sql_pinned]
    wait = LanceTableVersionSensor(task_id="wait", table="ledger.payments", lance_conn_id=CONNECTION)
    pinned = {"tables": {"payments": wait.output}}
    total = SQLThresholdCheckOperator(
        task_id="total",
        sql="SELECT sum(amount) FROM payments",
        min_threshold=1,
        max_threshold="SELECT 1000 * count(*) FROM payments",
        hook_params=pinned,
    )
    duplicates = SQLValueCheckOperator(
        task_id="duplicates",
        sql="SELECT count(payment) - count(DISTINCT payment) FROM payments",
        pass_value=0,
        hook_params=pinned,
    )
    # [END howto_sql_pinned]

    # [START howto_sql_versions]
    # Versions of a table, and several tables, may be read in one query.
    lost = SQLValueCheckOperator(
        task_id="lost",
        sql="""
            SELECT count(*) FROM "ledger.payments@1" before
            WHERE NOT EXISTS (SELECT 1 FROM payments now WHERE now.payment = before.payment)
        """,
        pass_value=0,
        hook_params=pinned,
    )
    # [END howto_sql_versions]

    # [START howto_sql_query]
    largest = SQLExecuteQueryOperator(
        task_id="largest",
        sql="SELECT payment, CAST(amount AS DOUBLE) FROM payments ORDER BY amount DESC LIMIT 3",
        hook_params=pinned,
    )
    # [END howto_sql_query]
