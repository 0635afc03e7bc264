"""Schedule on a commit: a DAG that runs when a Lance table has advanced, regardless of the writer.

Each run covers all versions since the run before it. An update may be emitted twice, with the same version
and location; the second run then sees in the XCom of the first that it was handled, and skips it.
"""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, task

from airflow_provider_lancens.assets import new_versions, watched_table

try:
    from airflow.sdk.exceptions import AirflowSkipException
except ImportError:  # Airflow 3.1
    from airflow.exceptions import AirflowSkipException

CONNECTION = os.environ.get("LANCE_EXAMPLE_CONNECTION", "lake")
TABLE = os.environ.get("LANCE_EXAMPLE_TABLE", "sales$orders")
POLL_SECONDS = float(os.environ.get("LANCE_EXAMPLE_POLL", "60"))

ORDERS = watched_table(TABLE, CONNECTION, poll_interval=POLL_SECONDS)


@task
def new_version(triggering_asset_events: Any) -> dict[str, Any]:
    """Return this run's versions: from the oldest to the newest, if several updates triggered one run."""
    for record in new_versions(triggering_asset_events).values():  # the DAG is scheduled on one table
        return record
    raise AirflowSkipException("no update triggered this run")


@task
def skip_repeats(advance: dict[str, Any], ti: Any) -> dict[str, Any]:
    """Skip a version that an earlier run has handled: at least once becomes exactly once."""
    # Without map_indexes, Airflow returns a list of them once several runs have handled a version.
    done = ti.xcom_pull(task_ids="handle", map_indexes=-1, include_prior_dates=True)
    # A table that was created again may have the same version, at another location.
    if done and all(done.get(name) == advance.get(name) for name in ("location", "version")):
        raise AirflowSkipException(f"{advance['table']} was already handled at version {done['version']}")
    return advance


@task(multiple_outputs=True)
def handle(advance: dict[str, Any]) -> dict[str, Any]:
    """Read exactly this version, or the changes since the previous one; here it is only printed."""
    print(f"{advance['table']}: from {advance['previous_version']} to {advance['version']}")
    return advance


with DAG(
    dag_id="lance_schedule_on_commit",
    schedule=[ORDERS],
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 2, "retry_delay": timedelta(seconds=30)},
    tags=["lance", "example"],
    doc_md=__doc__,
):
    handle(skip_repeats(new_version()))
