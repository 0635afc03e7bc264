"""Waits for a table in a folder, a write and its repetition, maintenance that isn't due, and a deletion."""

from airflow.sdk import DAG, get_current_context, task

from airflow_provider_lancens.operators import (
    LanceDeclareTableOperator,
    LanceDeleteOperator,
    LanceMaintainOperator,
)
from airflow_provider_lancens.sensors.table_version_sensor import LanceTableVersionSensor

with DAG("metered", schedule=None, params={"lance_conn_id": ""}) as dag:
    given = {"table": "t", "lance_conn_id": "{{ params.lance_conn_id }}"}

    @task
    def load(key: str) -> None:
        import pyarrow as pa

        from airflow_provider_lancens.hooks import LanceHook
        from airflow_provider_lancens.spark import WriteIdentity

        lake = LanceHook(get_current_context()["params"]["lance_conn_id"])
        rows = pa.table({"id": [1, 2, 3]})
        lake.table("t").append(rows, key=WriteIdentity(key, on_existing_key="skip"))

    declare = LanceDeclareTableOperator(task_id="declare", **given)
    wait = LanceTableVersionSensor(task_id="wait", min_version=1, poke_interval=0.2, **given)
    late = LanceTableVersionSensor(
        task_id="late", min_version=9, poke_interval=0.2, timeout=1, soft_fail=True, **given
    )
    declare >> load.override(task_id="load")("monday") >> wait
    delete = LanceDeleteOperator(task_id="delete", where="id = 1", **given)
    maintain = LanceMaintainOperator(task_id="maintain", **given)
    wait >> load.override(task_id="load_again")("monday") >> maintain >> delete >> late
