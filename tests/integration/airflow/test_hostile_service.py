"""A REST service that hangs, refuses, fails or talks nonsense: what tasks and waits make of it."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import lance
import pyarrow as pa
import pytest
from lance.namespace import RestAdapter

from airflow_provider_lancens.hooks import LanceHook
from airflow_provider_lancens.hooks.airflow_errors import (
    AirflowException,
    AirflowFailException,
    LanceRetryableError,
)
from airflow_provider_lancens.operators import LanceDeclareTableOperator
from airflow_provider_lancens.sensors.table_version_sensor import LanceTableVersionSensor
from airflow_provider_lancens.triggers.table_version_trigger import LanceTableVersionTrigger
from tests.integration.airflow.lifecycle import PATIENCE, run_to_its_end

Connect = Callable[..., str]
TOKEN = "hush-hush"


class Service(BaseHTTPRequestHandler):
    """Answers each request as a test says."""

    status: ClassVar[int] = 200
    body: ClassVar[bytes] = b""
    held: ClassVar[threading.Event]
    """Set while answers are given."""
    seen: ClassVar[list[str | None]] = []
    """The Authorization of each request."""

    def do_POST(self) -> None:
        self.seen.append(self.headers["Authorization"])
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        self.held.wait(PATIENCE)
        self.send_response(self.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    do_GET = do_POST  # noqa: N815 - a name of the library

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[ThreadingHTTPServer]:
    held = threading.Event()
    held.set()
    monkeypatch.setattr(Service, "held", held, raising=False)
    monkeypatch.setattr(Service, "seen", [])
    with ThreadingHTTPServer(("127.0.0.1", 0), Service) as server, ThreadPoolExecutor(1) as thread:
        thread.submit(server.serve_forever, 0.01)
        yield server
        held.set()
        server.shutdown()


@pytest.fixture
def lake(service: ThreadingHTTPServer, connect: Connect) -> str:
    address = f"http://127.0.0.1:{service.server_port}"
    return connect(
        conn_type="lance", host=address, password=TOKEN, extra={"impl": "rest", "client.timeout": 0.5}
    )


def declare(lake: str) -> AirflowException:
    """The error of a task that declares a table."""
    task = LanceDeclareTableOperator(task_id="declare", table="sales.orders", lance_conn_id=lake)
    with pytest.raises(AirflowException) as failed:
        task.execute({})
    shown = f"{failed.value} {failed.value.__cause__} {failed.value.__context__}"
    assert TOKEN not in shown
    return failed.value


@pytest.mark.parametrize(
    ("status", "body", "kind", "said"),
    [
        (401, b"", AirflowFailException, "(code 16, UNAUTHENTICATED)"),
        (401, b'{"error": "no token", "code": 16}', AirflowFailException, "no token (code 16"),
        (403, f"<p>{TOKEN}</p>".encode(), AirflowFailException, "<p>***</p> (code 15, PERMISSION_DENIED)"),
        (404, b"", AirflowFailException, "(code 0, UNSUPPORTED)"),
        (429, b"", LanceRetryableError, "(code 21, THROTTLING)"),
        (500, b"oops", LanceRetryableError, "oops (code 17, SERVICE_UNAVAILABLE)"),
        (500, b'{"error": "broken", "code": 18}', AirflowFailException, "broken (code 18, INTERNAL)"),
        (503, b"", LanceRetryableError, "(code 17, SERVICE_UNAVAILABLE)"),
        (200, b"<html>", AirflowFailException, "is this the address of a REST catalog? (code 18"),
        (200, b"{}", AirflowFailException, "returned no location (code 18"),
        (200, b'{"location": "relative"}', AirflowFailException, "(code 13, INVALID_INPUT)"),
        (200, b'{"location": "s3://me:%b@b/t"}' % TOKEN.encode(), AirflowFailException, "credentials"),
    ],
)
def test_an_answer_decides_whether_the_task_is_retried(
    lake: str,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    body: bytes,
    kind: type[AirflowException],
    said: str,
) -> None:
    monkeypatch.setattr(Service, "status", status)
    monkeypatch.setattr(Service, "body", body)

    error = declare(lake)

    assert isinstance(error, kind)
    assert said in str(error)
    assert Service.seen == [f"Bearer {TOKEN}"]


def test_a_service_that_does_not_answer_is_given_up(lake: str) -> None:
    Service.held.clear()

    error = declare(lake)

    assert isinstance(error, LanceRetryableError)
    assert "didn't answer within 0.5 s (code 17, SERVICE_UNAVAILABLE)" in str(error)


async def test_a_deferred_wait_outlasts_a_service_that_hangs(
    lake: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The connection is changed to another service meanwhile, which the next poll reads."""
    Service.held.clear()
    trigger = LanceTableVersionTrigger(table="sales$orders", lance_conn_id=lake, poll_interval=0.1)
    with RestAdapter("dir", {"root": str(tmp_path)}, port=0) as adapter:
        async with asyncio.timeout(PATIENCE):
            waiting = asyncio.ensure_future(anext(aiter(trigger.run())))
            while not Service.seen:  # noqa: ASYNC110 - a thread of the server fills it
                await asyncio.sleep(0.01)
            fields = {
                "conn_type": "lance",
                "host": f"http://127.0.0.1:{adapter.port}",
                "extra": {"impl": "rest"},
            }
            monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps(fields))
            await asyncio.to_thread(_declare_orders)

            assert (await waiting).payload["version"] == 1


def _declare_orders() -> None:
    catalog = LanceHook("lake").catalog()
    catalog.create_namespace("sales")
    catalog.declare_table("sales.orders", schema={"id": "bigint"})


def test_a_poking_wait_outlasts_a_service_that_hangs(
    lake: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    location = str(tmp_path / "orders")
    lance.write_dataset(pa.table({"id": [1]}), location)
    monkeypatch.setattr(Service, "body", json.dumps({"location": location}).encode())
    Service.held.clear()
    with ThreadPoolExecutor(1) as worker:
        sensor = LanceTableVersionSensor(
            task_id="wait",
            table="sales.orders",
            lance_conn_id=lake,
            poke_interval=0.1,
            timeout=PATIENCE,
            deferrable=False,
        )
        waiting = worker.submit(run_to_its_end, sensor)
        while len(Service.seen) < 2:
            assert not waiting.done()
        Service.held.set()

        assert waiting.result(60)["version"] == 1
