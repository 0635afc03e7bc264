"""Cascade safely: plan the drop of a namespace, check the plan, then drop only permitted tables.

No files are deleted. A second run finds nothing left to drop.
"""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG, task

from airflow_provider_lancens.operators import LanceDropNamespaceOperator

try:
    from airflow.sdk.exceptions import AirflowFailException
except ImportError:  # Airflow 3.1
    from airflow.exceptions import AirflowFailException

NAMESPACE = "scratch"
MOST_TABLES = 100


# [START howto_approve_plan]
@task
def approve(planned: dict[str, Any]) -> list[str]:
    """Reject a plan that is larger than expected; return the non-Lance tables that may also be dropped."""
    plan = planned.get("plan")
    if plan is None:  # there is no such namespace
        return []
    kept = [table for table in plan["foreign_tables"] if not table.startswith(f"{NAMESPACE}$tmp_")]
    if kept or plan["lance_table_count"] > MOST_TABLES:
        raise AirflowFailException(
            f"{plan['lance_table_count']} Lance tables; tables that must not be dropped: {kept}"
        )
    return list(plan["foreign_tables"])


# [END howto_approve_plan]


with DAG(
    dag_id="lance_cascade_safely",
    schedule=None,
    default_args={"lance_conn_id": "lake", "retries": 2},
    tags=["lance", "example"],
    doc_md=__doc__,
) as dag:
    # [START howto_cascade]
    plan = LanceDropNamespaceOperator(
        task_id="plan", namespace=NAMESPACE, cascade=True, foreign_tables=["*"], dry_run=True
    )
    LanceDropNamespaceOperator(
        task_id="drop", namespace=NAMESPACE, cascade=True, foreign_tables=approve(plan.output)
    )
    # [END howto_cascade]
