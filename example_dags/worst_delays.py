"""Schedule on a table: report the worst delays whenever `lance_flights` has joined a month.

The asset's event carries the version that the ingestion committed, and each run reads exactly that one.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, task
from nycflights.tables import TABLES

from airflow_provider_lancens.assets import lance_table, new_versions

CONNECTION = "lance_flights"
DELAYS = lance_table(TABLES["delays"], CONNECTION)


# [START howto_versions_of_events]
@task
def new_version(triggering_asset_events: Any) -> int | None:
    """Return the newest version that started this run; None if it was triggered by hand."""
    record = new_versions(triggering_asset_events).get(TABLES["delays"])
    return record and record["version"]


# [END howto_versions_of_events]


@task
def worst_hours(version: int | None) -> list[str]:
    """Return the hours with the worst delays, in a version of the table or in the newest one."""
    from nycflights.tables import at_version, newest
    from nycflights.tables import worst_hours as worst_hours_of

    from airflow_provider_lancens.hooks import LanceHook

    namespace, table = LanceHook.for_connection(CONNECTION).get_conn(), TABLES["delays"]
    delays = newest(namespace, table) if version is None else at_version(namespace, table, version)
    return [
        f"{hour['time_hour']:%b %d %Hh} from {hour['origin']}: {hour['mean_dep_delay']:.0f} minutes"
        for hour in (worst_hours_of(delays) if delays else [])
    ]


with DAG(
    dag_id="lance_worst_delays",
    schedule=[DELAYS],
    catchup=False,
    default_args={"retries": 2, "retry_delay": timedelta(seconds=10)},
    tags=["lance", "example"],
    doc_md=__doc__,
) as dag:
    worst_hours(new_version())
