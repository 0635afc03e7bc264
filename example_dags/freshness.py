"""Alert if a table gets no new data for six hours, while a task waits for them.

A run waits for the next version with new data, and then the next run begins. After six hours, the deadline
calls a function, and the wait goes on; after a day, the wait times out, and the task's callback is called.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG
from airflow.sdk.definitions.deadline import AsyncCallback, DeadlineAlert, DeadlineReference

from airflow_provider_lancens.sensors import LanceTableVersionSensor

TABLE = "sales.orders"
CONNECTION = os.environ.get("LANCE_EXAMPLE_CONNECTION", "lake")
MAX_AGE = timedelta(seconds=float(os.environ.get("LANCE_EXAMPLE_MAX_AGE", "21600")))
POLL_SECONDS = float(os.environ.get("LANCE_EXAMPLE_POLL", "60"))


# [START howto_freshness_wait]
def tell_timeout(context: Any) -> None:
    """Tell that a wait has timed out; here the log is told."""
    print(f"{TABLE} has no new data: {context['exception']}")


with DAG(
    dag_id="lance_freshness",
    schedule="@continuous",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    deadline=DeadlineAlert(
        reference=DeadlineReference.DAGRUN_QUEUED_AT,
        interval=MAX_AGE,
        callback=AsyncCallback("freshness_alerts.tell", {"table": TABLE}),
    ),
    tags=["lance", "example"],
    doc_md=__doc__,
) as dag:
    LanceTableVersionSensor(
        task_id="wait_for_new_data",
        table=TABLE,
        lance_conn_id=CONNECTION,
        timeout=4 * MAX_AGE.total_seconds(),
        poke_interval=POLL_SECONDS,
        on_failure_callback=tell_timeout,
    )
# [END howto_freshness_wait]
