"""The days that an ingestion changed are the partitions of its asset event, for which another DAG runs."""

from typing import Any

import lance
import pytest

from tests.e2e.servers import RunningAirflow
from tests.support.airflow_versions import AIRFLOW_V_3_3_PLUS
from tests.support.running_lake import Lake

WRITER, READER = "lance_changed_days", "lance_totals_of_changed_days"
DAYS = ["2026-11-01", "2026-11-02"]

pytestmark = pytest.mark.long


def computed(airflow: RunningAirflow, count: int) -> list[list[str]]:
    """The days of each run of the reader, once this many have succeeded."""

    def ask() -> list[list[str]]:
        runs = airflow.get(f"/api/v2/dags/{READER}/dagRuns").get("dag_runs", [])
        assert "failed" not in {run["state"] for run in runs}, airflow.task_logs
        done: list[dict[str, Any]] = [run for run in runs if run["state"] == "success"]
        return sorted(airflow.xcom(READER, run["dag_run_id"], "changed")["days"] for run in done)

    return airflow.until(lambda: found if len(found := ask()) >= count else [])


def test_another_dag_runs_for_the_days_that_a_commit_changed(airflow: RunningAirflow, lake: Lake) -> None:
    airflow.unpause(READER)

    run_id = airflow.trigger_run(WRITER)

    assert airflow.until(lambda: airflow.ended(WRITER, run_id)) == "success"
    expected = [[day] for day in DAYS] if AIRFLOW_V_3_3_PLUS else [DAYS]
    assert computed(airflow, len(expected)) == expected
    totals = lance.dataset(namespace_client=lake.namespace, table_id=["market", "totals"])
    rows = totals.to_table().sort_by("day").to_pylist()
    assert rows == [{"day": day, "amount": 45.0} for day in DAYS]
