"""The trigger in an event loop, which it must never block."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.triggers.table_version_trigger import (
    LanceAnyTableTrigger,
    LanceTableVersionTrigger,
)
from tests.integration.airflow.tables import Table


@pytest.fixture
def unresponsive_server() -> Iterator[socket.socket]:
    """A server that accepts connections and never replies."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@pytest.fixture
async def complaint() -> AsyncIterator[asyncio.Event]:
    """Set when a wait logs an unreachable server."""
    complained = asyncio.Event()
    log = logging.getLogger("airflow_provider_lancens.triggers.shared_poller")

    def note(record: logging.LogRecord) -> bool:
        if record.getMessage().endswith("; still waiting"):
            complained.set()
        return True

    log.addFilter(note)
    yield complained
    log.removeFilter(note)


async def events(trigger: BaseTrigger) -> list[TriggerEvent]:
    async with asyncio.timeout(60):
        return [event async for event in trigger.run()]


def trigger(lake: str, table: object, **arguments: Any) -> LanceTableVersionTrigger:
    return LanceTableVersionTrigger(
        table=str(table), lance_conn_id=lake, **{"poll_interval": 0.05, **arguments}
    )


async def test_the_trigger_fires_once_with_the_table_status(lake: str, table: Table) -> None:
    location = table.declare()
    table.advance()
    fired = await events(trigger(lake, table))
    assert [event.payload for event in fired] == [
        {"status": "success", "table": str(table), "version": 1, "location": location}
    ]


async def test_the_trigger_fires_when_the_version_is_committed(lake: str, table: Table) -> None:
    table.declare()
    table.advance()
    waiting = asyncio.create_task(events(trigger(lake, table, after_version=1)))
    await asyncio.to_thread(table.advance)
    assert [event.payload["version"] for event in await waiting] == [2]


async def test_the_trigger_uses_a_changed_connection(
    connect: Callable[..., str],
    free_ports: list[int],
    metastore: MetastoreServer,
    table: Table,
    complaint: asyncio.Event,
) -> None:
    table.declare()
    table.advance()
    conn_id = connect(host=f"127.0.0.1:{free_ports[0]}")
    waiting = asyncio.create_task(events(trigger(conn_id, table)))
    await complaint.wait()
    assert connect(host=metastore.uri) == conn_id
    assert [event.payload["version"] for event in await waiting] == [1]


async def test_the_trigger_reports_why_a_wait_cannot_succeed(lake: str) -> None:
    (event,) = await events(trigger(lake, "orders"))
    assert event.payload["status"] == "error"
    assert "polling table 'orders'" in event.payload["message"]


async def test_a_wait_for_any_continues_if_one_of_its_waits_cannot_succeed(
    lake: str, table: Table, caplog: pytest.LogCaptureFixture
) -> None:
    table.declare()
    waits = [trigger(lake, one).serialize()[1] for one in ("orders", table)]
    waiting = asyncio.create_task(events(LanceAnyTableTrigger(waits=waits)))
    async with asyncio.timeout(60):
        while "still waiting for the other tables" not in caplog.text:  # noqa: ASYNC110 - a log
            await asyncio.sleep(0.01)
    await asyncio.to_thread(table.advance)
    (event,) = await waiting
    assert (event.payload["table"], event.payload["version"]) == (str(table), 1)
    assert caplog.text.count("still waiting for the other tables") == 1


async def test_a_wait_for_any_reports_why_none_of_its_waits_can_succeed(lake: str) -> None:
    waits = [trigger(lake, name).serialize()[1] for name in ("orders", "items")]
    (event,) = await events(LanceAnyTableTrigger(waits=waits))
    assert event.payload["status"] == "error"
    assert "polling table 'orders'" in event.payload["message"]
    assert "polling table 'items'" in event.payload["message"]


async def test_a_hundred_concurrent_waits_end(lake: str, table: Table) -> None:
    table.declare()
    waiting = [asyncio.create_task(events(trigger(lake, table))) for _ in range(100)]
    await asyncio.to_thread(table.advance)
    fired = await asyncio.gather(*waiting)
    assert [[event.payload["version"] for event in wait] for wait in fired] == [[1]] * 100


async def test_an_unresponsive_server_does_not_block_the_event_loop(
    connect: Callable[..., str], unresponsive_server: socket.socket
) -> None:
    address = f"127.0.0.1:{unresponsive_server.getsockname()[1]}"
    conn_id = connect(host=address, extra={"client.read-timeout": 2})
    waiting = asyncio.create_task(events(trigger(conn_id, "sales$orders")))
    # The first wait of a process imports modules, which may take long. Then it calls the server.
    connection, _ = await asyncio.to_thread(unresponsive_server.accept)
    loop = asyncio.get_running_loop()
    started = loop.time()
    turns = 0
    while loop.time() < started + 1:
        await asyncio.sleep(0.01)
        turns += 1
    assert turns > 20
    assert not waiting.done()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    connection.close()
