"""A task that fails every hour for as long as the newest data of a table are older than six hours."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG, task

CONNECTION = os.environ.get("LANCE_EXAMPLE_CONNECTION", "lake")
MAX_AGE = timedelta(seconds=float(os.environ.get("LANCE_EXAMPLE_MAX_AGE", "21600")))

# [START howto_freshness_check]
with DAG(
    dag_id="lance_freshness_check",
    schedule="@hourly",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    tags=["lance", "example"],
    doc_md=__doc__,
) as dag:

    @task
    def check(table: str) -> dict[str, Any]:
        """Fail if the table has got no new data for too long."""
        from airflow_provider_lancens.hooks import LanceHook

        return LanceHook(CONNECTION).table(table).check_freshness(max_age=MAX_AGE).as_dict()

    check.expand(table=["sales.orders", "sales.customers"])
# [END howto_freshness_check]
