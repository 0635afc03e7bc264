"""Waits that end without a version: timeouts, skips and failures."""

from airflow.sdk import DAG

from airflow_provider_lancens.sensors.table_version_sensor import LanceTableVersionSensor

NEVER = {"table": "{{ params.table }}", "timeout": 0.5}
IMPOSSIBLE = {"table": "a_name_of_one_level", "timeout": 60, "retries": 3}
POKE = {"deferrable": False}
RESCHEDULE = {"deferrable": False, "mode": "reschedule"}
DEFERRABLE = {"deferrable": True}

WAITS = {
    "poke_times_out": {**NEVER, **POKE},
    "reschedule_times_out": {**NEVER, **RESCHEDULE},
    "poke_is_skipped": {**NEVER, **POKE, "soft_fail": True},
    "reschedule_is_skipped": {**NEVER, **RESCHEDULE, "soft_fail": True},
    "poke_is_impossible": {**IMPOSSIBLE, **POKE},
    "deferrable_is_impossible": {**IMPOSSIBLE, **DEFERRABLE},
    "deferrable_is_impossible_and_skipped": {**IMPOSSIBLE, **DEFERRABLE, "soft_fail": True},
}

with DAG("endings", schedule=None, params={"table": "", "lance_conn_id": ""}) as dag:
    for task_id, arguments in WAITS.items():
        LanceTableVersionSensor(
            task_id=task_id, lance_conn_id="{{ params.lance_conn_id }}", poke_interval=0.2, **arguments
        )
