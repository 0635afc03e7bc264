"""A namespace and a table are created and dropped, twice each."""

from airflow.sdk import DAG, chain

from airflow_provider_lancens.operators.namespaces import (
    LanceCreateNamespaceOperator,
    LanceDropNamespaceOperator,
)
from airflow_provider_lancens.operators.tables import (
    LanceDeclareTableOperator,
    LanceDeregisterTableOperator,
)

STEPS = {
    "create": (LanceCreateNamespaceOperator, {"namespace": "{{ params.database }}"}),
    "declare": (
        LanceDeclareTableOperator,
        {"table": "{{ params.database }}$orders", "properties": {"run": "{{ run_id }}"}},
    ),
    "deregister": (
        LanceDeregisterTableOperator,
        {"table": "{{ params.database }}$orders", "if_missing": "skip"},
    ),
    "drop": (LanceDropNamespaceOperator, {"namespace": "{{ params.database }}", "if_missing": "skip"}),
}

with DAG("tables", schedule=None, params={"database": "", "lance_conn_id": ""}) as dag:
    chain(
        *(
            operator(task_id=f"{step}{again}", lance_conn_id="{{ params.lance_conn_id }}", **arguments)
            for step, (operator, arguments) in STEPS.items()
            for again in ("", "_again")
        )
    )
