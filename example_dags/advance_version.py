"""Advance a version from another writer: the metastore is the version authority, the writer has only a path.

Such writers are Lance's Java namespaces, Trino, or a job that was given only the location.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, task

from airflow_provider_lancens.assets import lance_table
from airflow_provider_lancens.operators import (
    LanceAdvanceVersionOperator,
    LanceCheckTableOperator,
    LanceCreateNamespaceOperator,
    LanceDeclareTableOperator,
)

CONNECTION = "lake"
TABLE = "returns$parcels"


@task(retries=0)  # a second try would write the rows again
def write_by_path(location: str) -> dict[str, Any]:
    """Act as the other writer, and return the version that was written."""
    import lance
    import pyarrow as pa

    written = lance.write_dataset(pa.table({"parcel": [1, 2, 3]}), location, mode="append")
    return {"previous_version": written.version - 1, "version": written.version}


with DAG(
    dag_id="lance_advance_version",
    schedule=None,
    max_active_runs=1,
    default_args={"lance_conn_id": CONNECTION, "retries": 2, "retry_delay": timedelta(seconds=30)},
    tags=["lance", "example"],
    doc_md=__doc__,
) as dag:
    # [START howto_create_namespace]
    create = LanceCreateNamespaceOperator(
        task_id="create",
        namespace="returns",
        properties={"database.description": "What came back", "team": "logistics"},
    )
    # [END howto_create_namespace]
    # [START howto_declare_managed]
    declare = LanceDeclareTableOperator(task_id="declare", table=TABLE, version_authority="catalog")
    # [END howto_declare_managed]
    written = write_by_path(declare.output["location"])
    # [START howto_advance]
    advance = LanceAdvanceVersionOperator(
        task_id="advance",
        table=TABLE,
        expected_version="{{ ti.xcom_pull('write_by_path')['previous_version'] }}",
        version="{{ ti.xcom_pull('write_by_path')['version'] }}",
        outlets=[lance_table(TABLE, CONNECTION)],  # DAGs that are scheduled on the table run now
    )
    # [END howto_advance]
    # [START howto_check]
    check = LanceCheckTableOperator(task_id="check", table=TABLE)
    # [END howto_check]
    create >> declare
    written >> advance >> check
