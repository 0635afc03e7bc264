"""An Airflow connection to a real metastore, and a table whose version tests advance."""

import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from lance_namespace import LanceNamespace

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.namespace import Hive2Namespace
from airflow_provider_lancens.sensors.table_version_sensor import LanceTableVersionSensor
from tests.integration.airflow.lifecycle import MODES, PATIENCE, Attempt, run_to_its_end
from tests.integration.airflow.tables import Table


@pytest.fixture
def lake(metastore: MetastoreServer, connect: Callable[..., str], tmp_path: Path) -> str:
    """The id of an Airflow connection to the metastore, with the test's own root."""
    return connect(host=metastore.uri, extra={"root": str(tmp_path)})


@pytest.fixture
def namespace(metastore: MetastoreServer, tmp_path: Path) -> Iterator[LanceNamespace]:
    """The namespace of this connection."""
    with closing(Hive2Namespace(uri=metastore.uri, root=str(tmp_path))) as namespace:
        yield namespace


@pytest.fixture
def table(namespace: LanceNamespace, database: str) -> Table:
    """A table that isn't declared yet, in its own database."""
    return Table(namespace, database, "orders")


@pytest.fixture
def attempt() -> Attempt:
    """The task instance of the test's operators."""
    return Attempt()


@pytest.fixture
def run(lake: str, attempt: Attempt) -> Callable[..., Any]:
    """Run an operator's task as a worker would, and return its XCom."""

    def execute(operator: type[Any], **arguments: Any) -> Any:
        return operator(task_id="task", lance_conn_id=lake, **arguments).execute({"ti": attempt})

    return execute


@pytest.fixture(params=list(MODES))
def wait(request: pytest.FixtureRequest, lake: str, table: Table) -> Callable[..., Any]:
    """Run a sensor on the test's table to its end in one of the modes, given an earlier run's result."""

    def run(earlier: Any = None, **arguments: Any) -> Any:
        given = {"table": str(table), "lance_conn_id": lake, "poke_interval": 0.05, "timeout": PATIENCE}
        sensor = LanceTableVersionSensor(task_id="wait", **{**given, **MODES[request.param], **arguments})
        return run_to_its_end(sensor, Attempt(earlier))

    return run


@pytest.fixture
def polled(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set when a sensor has polled its table, and has to wait."""
    event = threading.Event()
    poke = LanceTableVersionSensor.poke

    def observed(self: LanceTableVersionSensor, context: Any) -> Any:
        try:
            return poke(self, context)
        finally:
            event.set()

    monkeypatch.setattr(LanceTableVersionSensor, "poke", observed)
    return event


@pytest.fixture
def meanwhile(polled: threading.Event) -> Iterator[Callable[..., "Future[Any]"]]:
    """Start a wait in the background, and return after its first poll."""
    with ThreadPoolExecutor(1) as worker:

        def start(wait: Callable[..., Any], **arguments: Any) -> "Future[Any]":
            future = worker.submit(wait, **arguments)
            assert polled.wait(PATIENCE)
            return future

        yield start


@pytest.fixture
def free_ports() -> list[int]:
    """Two local ports without a server."""
    with socket.socket() as one, socket.socket() as two:
        one.bind(("127.0.0.1", 0))
        two.bind(("127.0.0.1", 0))
        return [one.getsockname()[1], two.getsockname()[1]]
