"""Glue with an assumed role: configured only in the connection, not in the DAG.

`lake_on_glue` is of type `lance_glue` and refers to an `aws` connection with a `role_arn`. Each task assumes
the role, and signs its requests to Glue and S3 with it.
"""

from __future__ import annotations

import os
from datetime import timedelta

from airflow.sdk import DAG, task

from airflow_provider_lancens.operators import LanceCreateNamespaceOperator, LanceDeclareTableOperator
from airflow_provider_lancens.sensors import LanceTableVersionSensor

CONNECTION = "lake_on_glue"
TABLE = "sales$orders"
POLL_SECONDS = float(os.environ.get("LANCE_EXAMPLE_POLL", "60"))


# [START howto_glue_write]
@task
def write() -> int:
    """Append through the namespace, which passes the role's credentials for S3 to Lance."""
    import lance
    import pyarrow as pa

    from airflow_provider_lancens.hooks import LanceHook

    namespace = LanceHook.for_connection(CONNECTION).get_conn()
    rows = pa.table({"order": [1, 2, 3]})
    written = lance.write_dataset(rows, namespace_client=namespace, table_id=TABLE.split("$"), mode="append")
    return int(written.version)


# [END howto_glue_write]


with DAG(
    dag_id="lance_glue_assumed_role",
    schedule=None,
    default_args={"lance_conn_id": CONNECTION, "retries": 2, "retry_delay": timedelta(seconds=30)},
    tags=["lance", "example"],
    doc_md=__doc__,
) as dag:
    # [START howto_glue]
    create = LanceCreateNamespaceOperator(task_id="create", namespace="sales")
    declare = LanceDeclareTableOperator(task_id="declare", table=TABLE)
    wait = LanceTableVersionSensor(
        task_id="wait", table=TABLE, min_version="{{ ti.xcom_pull('write') }}", poke_interval=POLL_SECONDS
    )
    create >> declare >> write() >> wait
    # [END howto_glue]
