"""One wait per table of the run's parameters, each for the first version; deferred, or rescheduled."""

import os
from typing import Any

from airflow.sdk import DAG, task

from airflow_provider_lancens.sensors.table_version_sensor import LanceTableVersionSensor


@task
def named(params: dict[str, Any]) -> list[str]:
    return list(params["tables"])


with DAG("many", schedule=None, params={"tables": []}, max_active_tasks=1000) as dag:
    LanceTableVersionSensor.partial(
        task_id="wait", lance_conn_id="counted", poke_interval=float(os.environ.get("LANCE_TEST_POLL", "60"))
    ).expand(table=named())

with DAG("many_rescheduled", schedule=None, params={"tables": []}, max_active_tasks=1000) as rescheduled:
    LanceTableVersionSensor.partial(
        task_id="wait", lance_conn_id="counted", mode="reschedule", deferrable=False, poke_interval=0.1
    ).expand(table=named())
