"""A task that Airflow ends takes its work on Spark along, and its retry is a task like any other."""

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.airflow.tables import Table
from tests.servers.spark import connect_server, standalone_cluster

Start = Callable[..., Any]
SECONDS = 120


@pytest.fixture
def place(request: pytest.FixtureRequest, connect: Callable[..., str], tmp_path: Path) -> Iterator[str]:
    """The id of a connection to where Spark runs."""
    if request.param == "local":
        yield connect("here", "spark", host="local[2]")
    elif request.param == "cluster":
        with standalone_cluster(tmp_path, workers=1) as url:
            yield connect("cluster", "spark", host=url)
    else:
        with connect_server(tmp_path) as address:
            yield connect("server", "spark_connect", host=f"sc://{address}")


@pytest.mark.parametrize(
    ("dag", "place", "ended_by"),
    [
        pytest.param("killed", "local", signal.SIGTERM, marks=pytest.mark.slow),
        # By which Airflow keeps an execution's timeout.
        pytest.param("killed", "local", signal.SIGALRM, marks=pytest.mark.slow),
        pytest.param("killed", "cluster", signal.SIGTERM, marks=pytest.mark.long),
        pytest.param("killed", "server", signal.SIGTERM, marks=pytest.mark.long),
        pytest.param("killed", "server", signal.SIGALRM, marks=pytest.mark.long),
        pytest.param("killed_own", "local", signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param("killed_own", "local", signal.SIGALRM, marks=pytest.mark.long),
        pytest.param("killed_own", "server", signal.SIGTERM, marks=pytest.mark.long),
    ],
    indirect=["place"],
)
def test_nothing_runs_on_and_the_retry_commits_once(
    start: Start, lake: str, table: Table, tmp_path: Path, dag: str, place: str, ended_by: signal.Signals
) -> None:
    table.declare()
    marker = tmp_path / "hanging"
    run = start(dag, table=str(table), lance_conn_id=lake, spark_conn_id=place, marker=str(marker))
    wait_until(marker.exists)
    worker, daemon, jvm = (int(pid) for pid in marker.read_text().split())

    run.signal(ended_by)
    tasks = run.result()

    gone = [worker] if place == "server" else [worker, daemon, jvm]
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in gone))
    assert tasks["ingest"]["state"] == "success"
    xcom = tasks["ingest"]["xcom"]
    assert (xcom["version"], xcom["rows"], xcom["committed"]) == (1, 10, True)
    why = {signal.SIGTERM: "the task was killed", signal.SIGALRM: "AirflowTaskTimeout"}[ended_by]
    assert why in run.log
    if "told" in tasks:
        assert tasks["told"]["xcom"] == {"table": str(table), "previous_version": None, "version": 1}


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)
