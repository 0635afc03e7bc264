"""A wait for the first version of a table."""

import os

from airflow.sdk import DAG

from airflow_provider_lancens.sensors import LanceTableVersionSensor

with DAG(dag_id="wait", schedule=None) as dag:
    LanceTableVersionSensor(
        task_id="wait", table=os.environ["WAIT_FOR"], lance_conn_id="lake", min_version=1, poke_interval=1
    )
