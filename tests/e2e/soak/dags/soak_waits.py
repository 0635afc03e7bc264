"""A run waits for one version of each table of a group; the last of its waits for any of two tables."""

import os

from airflow.sdk import DAG

from airflow_provider_lancens.sensors import LanceTableVersionSensor

WAITS = 10

with DAG(
    "soak_waits",
    schedule=None,
    params={"tables": [], "versions": []},
    max_active_runs=1000,
    max_active_tasks=1000,
    default_args={"lance_conn_id": "lake", "retries": 0},
) as dag:
    for number in range(WAITS):
        named = f"{{{{ params.tables[{number}] }}}}"
        is_last = number == WAITS - 1
        LanceTableVersionSensor(
            task_id=f"wait_{number}",
            table=[named, "{{ params.tables[0] }}"] if is_last else named,
            wait_for="any" if is_last else "all",
            min_version=f"{{{{ params.versions[{number}] }}}}",
            poke_interval=float(os.environ["LANCE_TEST_POLL"]),
            timeout=24 * 60 * 60,
        )
