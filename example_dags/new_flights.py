"""Read a table that another DAG writes: wait for new flights, and read only these.

Start it before a run of `lance_flights`: it waits in the triggerer, without a worker, until that run has
ingested its month.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, task
from nycflights.tables import TABLES

from airflow_provider_lancens.sensors import LanceTableVersionSensor

CONNECTION = "lance_flights"


@task
def version_now() -> int | None:
    """Return the current version, which the next one must exceed; None if nothing was written yet."""
    from airflow_provider_lancens.hooks import LanceHook

    return LanceHook.for_connection(CONNECTION).table_status(TABLES["flights"]).version or None


@task
def what_came(arrived: dict[str, Any]) -> dict[str, int]:
    """Return the number of flights, by month, that the new version added to the previous one."""
    from nycflights.tables import at_version, rows_by_month

    from airflow_provider_lancens.hooks import LanceHook

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
