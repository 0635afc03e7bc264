"""Concurrent, cleared and backfill runs of one DAG: together, they see every version."""

import pytest

from tests.e2e.servers import RunningAirflow
from tests.support.running_lake import Lake

DAG = "overlapping"

pytestmark = pytest.mark.long


def deferred(airflow: RunningAirflow, run_id: str, processes: int = 1) -> None:
    """Return when a run's wait has been deferred by the last of this many processes."""
    query = "select 1 from task_instance where run_id = ? and state = 'deferred'"
    airflow.until(lambda: airflow.ended_processes(run_id) == processes and airflow.rows(query, run_id))


def seen(airflow: RunningAirflow, run_id: str) -> tuple[int, int | None]:
    """The version and previous version that a run's wait returned, once it has."""
    assert airflow.until(lambda: airflow.ended(DAG, run_id)) == "success"
    result = airflow.xcom(DAG, run_id, "wait")
    return result["version"], result["previous_version"]


def test_concurrent_cleared_and_backfill_runs_each_continue_from_the_previous_run(
    airflow: RunningAirflow, lake: Lake
) -> None:
    table = lake.table("overlapped")
    table.declare()
    table.advance()

    def trigger_run(date: str) -> str:
        return airflow.trigger_run(DAG, f"{date}T00:00:00Z", table=str(table))

    assert seen(airflow, trigger_run("2026-01-01")) == (1, None)
    earlier, later = trigger_run("2026-01-02"), trigger_run("2026-01-03")
    deferred(airflow, earlier)
    deferred(airflow, later)
    airflow.clear(DAG, earlier, "wait")
    deferred(airflow, earlier, processes=2)

    table.advance()
    assert seen(airflow, earlier) == (2, 1)
    table.advance()
    # The scheduler decides whether the earlier one has ended when the later one polls.
    assert seen(airflow, later) in ((2, 1), (3, 2))
    assert seen(airflow, trigger_run("2025-12-31")) == (3, None)
