"""A wait without a bound, in several runs: each continues where the previous one ended."""

from airflow.sdk import DAG

from airflow_provider_lancens.operators.versions import LanceDeleteTagOperator
from airflow_provider_lancens.sensors.table_version_sensor import LanceTableVersionSensor

with DAG("since", schedule=None, params={"table": "", "lance_conn_id": ""}) as dag:
    given = {"lance_conn_id": "{{ params.lance_conn_id }}"}

    wait = LanceTableVersionSensor(
        task_id="wait", table="{{ params.table }}", pin=True, poke_interval=0.2, timeout=3, **given
    )
    mapped = LanceTableVersionSensor.partial(
        task_id="mapped", deferrable=False, poke_interval=0.2, timeout=3, **given
    ).expand(table=["{{ params.table }}"])
    release = LanceDeleteTagOperator(
        task_id="release", table="{{ params.table }}", tag=wait.output["tag"], **given
    )
    [wait, mapped] >> release
