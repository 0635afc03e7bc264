"""A wait without a bound, in several concurrent runs."""

from airflow.sdk import DAG

from airflow_provider_lancens.sensors.table_version_sensor import LanceTableVersionSensor

with DAG("overlapping", schedule=None, params={"table": ""}, max_active_runs=2) as dag:
    LanceTableVersionSensor(task_id="wait", table="{{ params.table }}", lance_conn_id="lake", poke_interval=2)
