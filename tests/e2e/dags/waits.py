"""Four waits in a row, in every mode, each for the version after the previous one."""

from airflow.sdk import DAG

from airflow_provider_lancens.sensors.table_version_sensor import LanceTableVersionSensor

with DAG("waits", schedule=None, params={"table": "", "lance_conn_id": ""}) as dag:
    given = {
        "table": "{{ params.table }}",
        "lance_conn_id": "{{ params.lance_conn_id }}",
        "poke_interval": 0.2,
    }

    missing = LanceTableVersionSensor(task_id="missing", deferrable=True, **given)
    poke = LanceTableVersionSensor(
        task_id="poke", deferrable=False, after_version=missing.output["version"], **given
    )
    reschedule = LanceTableVersionSensor(
        task_id="reschedule",
        deferrable=False,
        mode="reschedule",
        after_version="{{ ti.xcom_pull('poke')['version'] }}",
        **given,
    )
    deferrable = LanceTableVersionSensor(
        task_id="deferrable", deferrable=True, after_version=reschedule.output["version"], **given
    )
    missing >> poke >> reschedule >> deferrable
