"""Wait for a version: for a table that another writer fills, and then for the next version.

Start it before anything was written to the table; each commit lets it continue. The waits run in the
triggerer and occupy no worker. The table is a parameter of the run; by default it is the table that
`lance_spark_pinned_read` fills.
"""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, task

from airflow_provider_lancens.operators import LanceDeleteTagOperator
from airflow_provider_lancens.sensors import LanceTableVersionSensor

CONNECTION = "lake"
TABLE = "{{ params.table }}"
POLL_SECONDS = float(os.environ.get("LANCE_EXAMPLE_POLL", "60"))


# [START howto_read_version]
@task
def count_rows(arrived: dict[str, Any]) -> int:
    """Read exactly the version that a wait returned, regardless of later commits."""
    from airflow_provider_lancens.hooks import LanceHook

    return LanceHook(CONNECTION).table(arrived).count_rows()


# [END howto_read_version]


with DAG(
    dag_id="lance_wait_for_version",
    schedule=None,
    params={"table": "weather$readings"},
    default_args={"lance_conn_id": CONNECTION, "retries": 2, "retry_delay": timedelta(seconds=30)},
    tags=["lance", "example"],
    doc_md=__doc__,
) as dag:
    # [START howto_wait_min_version]
    filled = LanceTableVersionSensor(
        task_id="wait_until_filled",
        table=TABLE,
        min_version=1,
        poke_interval=POLL_SECONDS,
        timeout=timedelta(days=1).total_seconds(),
    )
    # [END howto_wait_min_version]

    # [START howto_wait_for_any]
    either = LanceTableVersionSensor(
        task_id="wait_for_any",
        table=[TABLE, "weather$means"],
        wait_for="any",
        poke_interval=POLL_SECONDS,
        timeout=timedelta(days=1).total_seconds(),
    )
    # [END howto_wait_for_any]
    filled >> either

    # [START howto_wait_after_version]
    arrived = LanceTableVersionSensor(
        task_id="wait_for_more",
        table=TABLE,
        after_version=filled.output["version"],
        pin=True,  # protects the version from clean-up while it is read
        poke_interval=POLL_SECONDS,
        timeout=timedelta(days=1).total_seconds(),
    )
    release = LanceDeleteTagOperator(task_id="release", table=TABLE, tag=arrived.output["tag"])
    count_rows(arrived.output) >> release.as_teardown(setups=arrived)
    # [END howto_wait_after_version]
