"""For those who read a table that somebody else writes: wait until flights have come, and look at just these.

Start it before a run of `lance_flights`: it waits in the triggerer, without a worker, until that run has
brought its month.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, task
from nycflights.tables import TABLES

from airflow_provider_lancens.sensors.table_version import LanceTableVersionSensor

CONNECTION = "lance_flights"


@task
def version_now() -> int | None:
    """The version to wait beyond; none where nobody has written yet."""
    from airflow_provider_lancens.hooks.base import LanceHook

    seen = LanceHook.for_connection(CONNECTION).table_version(TABLES["flights"])
    return seen.version if seen else None


@task
def what_came(arrived: dict[str, Any]) -> dict[str, int]:
    """The flights by month that the new version has and the previous one hadn't."""
    from nycflights.tables import at_version, rows_by_month

    from airflow_provider_lancens.hooks.base import LanceHook

    namespace = LanceHook.for_connection(CONNECTION).get_conn()
    before, now = (
        rows_by_month(at_version(namespace, arrived["table"], version))
        for version in (arrived["previous_version"], arrived["version"])
    )
    return {month: rows - before.get(month, 0) for month, rows in now.items() if rows != before.get(month)}


with DAG(
    dag_id="lance_new_flights",
    schedule=None,
    default_args={"lance_conn_id": CONNECTION, "retries": 2, "retry_delay": timedelta(seconds=10)},
    tags=["lance", "example"],
    doc_md=__doc__,
) as dag:
    arrived = LanceTableVersionSensor(
        task_id="wait_for_flights",
        table=TABLES["flights"],
        after_version=version_now(),
        poke_interval=5,
        timeout=timedelta(hours=1).total_seconds(),
    )
    what_came(arrived.output)
