"""A real metastore behind an Airflow connection, and a table in it whose version can be advanced."""

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
from airflow_provider_lancens.sensors.table_version import LanceTableVersionSensor
from tests.integration.airflow.lifecycle import MODES, Attempt, run_to_its_end
from tests.integration.airflow.tables import Table


@pytest.fixture
def lake(metastore: MetastoreServer, connect: Callable[..., str], tmp_path: Path) -> str:
    """The id of an Airflow connection to the metastore, with a root of the test's own."""
    return connect(host=metastore.uri, extra={"root": str(tmp_path)})


@pytest.fixture
def namespace(metastore: MetastoreServer, tmp_path: Path) -> Iterator[LanceNamespace]:
    """The namespace that this connection leads to."""
    with closing(Hive2Namespace(uri=metastore.uri, root=str(tmp_path))) as namespace:
        yield namespace


@pytest.fixture
def table(namespace: LanceNamespace, database: str) -> Table:
    """A table that nobody has declared yet, in a database of its own."""
    return Table(namespace, database, "orders")


@pytest.fixture
def attempt() -> Attempt:
    """The task instance that the test's operators run as."""
    return Attempt()


@pytest.fixture
def run(lake: str, attempt: Attempt) -> Callable[..., Any]:
    """Run an operator's task as a worker would, and return its XCom."""

    def execute(operator: type[Any], **arguments: Any) -> Any:
        return operator(task_id="task", lance_conn_id=lake, **arguments).execute({"ti": attempt})

    return execute


@pytest.fixture(params=list(MODES))
def wait(request: pytest.FixtureRequest, lake: str, table: Table) -> Callable[..., Any]:
    """Run a sensor on the test's table to its end in one of the modes, after what an earlier run returned."""

    def run(earlier: Any = None, **arguments: Any) -> Any:
        given = {"table": str(table), "lance_conn_id": lake, "poke_interval": 0.05, "timeout": 60}
        sensor = LanceTableVersionSensor(task_id="wait", **{**given, **MODES[request.param], **arguments})
        return run_to_its_end(sensor, Attempt(earlier))

    return run


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set when a sensor has looked at its table, and found that it has to wait."""
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
def meanwhile(looked: threading.Event) -> Iterator[Callable[..., "Future[Any]"]]:
    """Start a wait beside the test, and come back when it has looked once."""
    with ThreadPoolExecutor(1) as worker:

        def start(wait: Callable[..., Any], **arguments: Any) -> "Future[Any]":
            future = worker.submit(wait, **arguments)
            assert looked.wait(60)
            return future

        yield start


@pytest.fixture
def free_ports() -> list[int]:
    """Two ports of this machine where no server answers."""
    with socket.socket() as one, socket.socket() as two:
        one.bind(("127.0.0.1", 0))
        two.bind(("127.0.0.1", 0))
        return [one.getsockname()[1], two.getsockname()[1]]
