"""When Airflow kills a task, its Spark jobs end too, and its retry runs normally."""

import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.integration.airflow.tables import Table
from tests.servers.spark import connect_server, standalone_cluster

Start = Callable[..., Any]
SECONDS = 300


@dataclass(frozen=True)
class Deployment:
    """Where Spark runs."""

    spark_conn_id: str
    own_executors: bool = True
    """Whether the executors' processes are there for the task alone, and end with it."""
    more: dict[str, Any] = field(default_factory=dict)
    """What the DAG has to know of it."""


@pytest.fixture
def deployment(
    request: pytest.FixtureRequest, connect: Callable[..., str], tmp_path: Path
) -> Iterator[Deployment]:
    if request.param == "local":
        yield Deployment(connect("here", "spark", host="local[2]"))
    elif request.param == "cluster":
        with standalone_cluster(tmp_path, workers=1) as url:
            yield Deployment(connect("cluster", "spark", host=url))
    elif request.param == "yarn":
        conn_id = connect("yarn", "spark", host="yarn", extra={"deploy-mode": "cluster"})
        yield Deployment(conn_id, more={"spark_conf": request.getfixturevalue("yarn").spark_conf})
    else:
        with connect_server(tmp_path) as address:
            yield Deployment(connect("server", "spark_connect", host=f"sc://{address}"), own_executors=False)


@pytest.mark.parametrize(
    ("dag", "deployment", "ended_by"),
    [
        pytest.param("killed", "local", signal.SIGTERM, marks=pytest.mark.thorough),
        # Airflow's signal for an execution timeout.
        pytest.param("killed", "local", signal.SIGALRM, marks=pytest.mark.long),
        pytest.param("killed", "cluster", signal.SIGTERM, marks=pytest.mark.long),
        pytest.param("killed", "yarn", signal.SIGTERM, marks=pytest.mark.long),
        pytest.param("killed", "yarn", signal.SIGALRM, marks=pytest.mark.long),
        pytest.param("killed", "server", signal.SIGTERM, marks=pytest.mark.long),
        pytest.param("killed", "server", signal.SIGALRM, marks=pytest.mark.long),
        pytest.param("killed_own", "local", signal.SIGTERM, marks=pytest.mark.thorough),
        pytest.param("killed_own", "local", signal.SIGALRM, marks=pytest.mark.long),
        pytest.param("killed_own", "server", signal.SIGTERM, marks=pytest.mark.long),
    ],
    indirect=["deployment"],
)
def test_a_killed_task_leaves_no_process_and_its_retry_commits_once(
    start_alone: Start,
    lake: str,
    table: Table,
    tmp_path: Path,
    dag: str,
    deployment: Deployment,
    ended_by: signal.Signals,
) -> None:
    table.declare()
    marker = tmp_path / "hanging"
    spark = {"spark_conn_id": deployment.spark_conn_id, **deployment.more}
    run = start_alone(dag, table=str(table), lance_conn_id=lake, marker=str(marker), **spark)
    wait_until(marker.exists)
    worker, daemon, jvm = (int(pid) for pid in marker.read_text().split())

    run.signal(ended_by)
    tasks = run.result()

    gone = [worker, daemon, jvm] if deployment.own_executors else [worker]
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in gone))
    assert tasks["ingest"]["state"] == "success"
    xcom = tasks["ingest"]["xcom"]
    assert (xcom["version"], xcom["inserted"], xcom["outcome"]) == (1, 10, "done")
    why = {signal.SIGTERM: "the task was killed", signal.SIGALRM: "AirflowTaskTimeout"}[ended_by]
    assert why in run.log
    assert "[py4j" not in run.log  # it doesn't log the end of the JVM
    if "emitted" in tasks:
        rows = {"operation": "append", "inserted": 10, "updated": 0, "deleted": 0}
        event = {"table": str(table), "previous_version": None, "version": 1, **rows}
        emitted = tasks["emitted"]["xcom"]
        assert emitted.pop("location").endswith(".lance")
        assert emitted == event


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)
