"""A DAG that runs on a commit, through a restart of all servers."""

import pytest

from tests.e2e.running.conftest import Lake
from tests.e2e.servers import RunningAirflow
from tests.e2e.versions import AIRFLOW_V_3_3_PLUS

DAG = "lance_schedule_on_commit"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def handled(airflow: RunningAirflow, count: int) -> list[tuple[int | None, int]]:
    """What the runs handled, in their order, once there are so many: previous version and version."""

    def ask() -> list[tuple[int | None, int]]:
        runs = airflow.get(f"/api/v2/dags/{DAG}/dagRuns?order_by=run_after").get("dag_runs", [])
        done = [run["dag_run_id"] for run in runs if run["state"] == "success"]
        values = [airflow.xcom(DAG, run, "handle") for run in done]
        return [(value["previous_version"], value["version"]) for value in values if value]

    return airflow.until(lambda: found if len(found := ask()) >= count else [])


def test_a_watched_table_is_followed_through_a_restart_without_a_gap(
    airflow: RunningAirflow, lake: Lake
) -> None:
    watched = lake.table("watched")
    watched.declare()
    assert watched.advance() == 1
    airflow.unpause(DAG)
    assert handled(airflow, 1) == [(None, 1)]
    assert watched.advance() == 2
    assert handled(airflow, 2) == [(None, 1), (1, 2)]
    before = 2 if AIRFLOW_V_3_3_PLUS else None  # older ones keep no note of what was told
    with airflow.stopped():
        for _ in range(3):
            watched.advance()
    assert handled(airflow, 3) == [(None, 1), (1, 2), (before, 5)]
