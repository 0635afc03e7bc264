"""A DAG that is scheduled on commits, across a restart of the servers."""

import pytest

from quickstart.servers import COMPONENTS
from tests.e2e.servers import RunningAirflow
from tests.integration.airflow.tables import Table
from tests.support.airflow_versions import AIRFLOW_V_3_3_PLUS
from tests.support.running_lake import Lake

DAG = "lance_schedule_on_commit"

pytestmark = pytest.mark.thorough


def handled(airflow: RunningAirflow, count: int) -> list[tuple[int | None, int]]:
    """The previous version and version of each run in order, once there are this many."""

    def ask() -> list[tuple[int | None, int]]:
        runs = airflow.get(f"/api/v2/dags/{DAG}/dagRuns?order_by=run_after").get("dag_runs", [])
        done = [run["dag_run_id"] for run in runs if run["state"] == "success"]
        values = [airflow.xcom(DAG, run, "handle") for run in done]
        return [(value["previous_version"], value["version"]) for value in values if value]

    return airflow.until(lambda: found if len(found := ask()) >= count else [])


@pytest.fixture(scope="module")
def watched(airflow: RunningAirflow, lake: Lake) -> Table:
    """A table whose first two versions were each processed by a run."""
    table = lake.table("watched")
    table.declare()
    assert table.advance() == 1
    airflow.unpause(DAG)
    airflow.reparse(DAG)  # so that Airflow watches the assets of the unpaused DAG
    assert handled(airflow, 1) == [(None, 1)]
    assert table.advance() == 2
    assert handled(airflow, 2) == [(None, 1), (1, 2)]
    return table


@pytest.mark.parametrize(
    "servers", [("triggerer",), pytest.param(COMPONENTS, marks=pytest.mark.long)], ids=" ".join
)
def test_a_watched_table_emits_every_version_across_a_restart(
    airflow: RunningAirflow, watched: Table, servers: tuple[str, ...]
) -> None:
    earlier = handled(airflow, 2)
    _, newest = earlier[-1]
    before = newest if AIRFLOW_V_3_3_PLUS else None  # older versions do not store emitted versions

    with airflow.stopped(*servers):
        for _ in range(3):
            watched.advance()

    assert handled(airflow, len(earlier) + 1) == [*earlier, (before, newest + 3)]
