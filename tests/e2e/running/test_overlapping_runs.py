"""Runs of one DAG that wait at once, one cleared meanwhile, and a backfill: no version lies in no run."""

import pytest

from tests.e2e.running.conftest import Lake
from tests.e2e.servers import RunningAirflow

DAG = "overlapping"

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


def deferred(airflow: RunningAirflow, run_id: str, processes: int = 1) -> None:
    """Return when a run's wait has been deferred, by its newest process, the last of so many."""
    query = "select 1 from task_instance where run_id = ? and state = 'deferred'"
    airflow.until(lambda: airflow.ended_processes(run_id) == processes and airflow.rows(query, run_id))


def seen(airflow: RunningAirflow, run_id: str) -> tuple[int, int | None]:
    """What a run's wait handed on, once it has: version and previous version."""
    assert airflow.until(lambda: airflow.ended(DAG, run_id)) == "success"
    result = airflow.xcom(DAG, run_id, "wait")
    return result["version"], result["previous_version"]


def test_runs_at_once_and_a_cleared_one_and_a_backfill_each_go_on_from_the_run_before_them(
    airflow: RunningAirflow, lake: Lake
) -> None:
    table = lake.table("overlapped")
    table.declare()
    table.advance()

    def press(date: str) -> str:
        return airflow.press(DAG, f"{date}T00:00:00Z", table=str(table))

    assert seen(airflow, press("2026-01-01")) == (1, None)
    earlier, later = press("2026-01-02"), press("2026-01-03")
    deferred(airflow, earlier)
    deferred(airflow, later)
    airflow.clear(DAG, earlier, "wait")
    deferred(airflow, earlier, processes=2)

    table.advance()
    assert seen(airflow, earlier) == (2, 1)
    table.advance()
    # Whether the earlier one had ended when the later one looked is up to the scheduler.
    assert seen(airflow, later) in ((2, 1), (3, 2))
    assert seen(airflow, press("2025-12-31")) == (3, None)
