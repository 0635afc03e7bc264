"""The trigger in an event loop, which it must never hold up."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from airflow.triggers.base import TriggerEvent

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.triggers.table_version import LanceTableVersionTrigger
from tests.integration.airflow.tables import Table


@pytest.fixture
def deaf_server() -> Iterator[str]:
    """The address of a server that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
async def complaint() -> AsyncIterator[asyncio.Event]:
    """Set when a wait logs that nobody answered."""
    complained = asyncio.Event()
    log = logging.getLogger("airflow_provider_lancens.triggers.polling")

    def note(record: logging.LogRecord) -> bool:
        complained.set()
        return True

    log.addFilter(note)
    yield complained
    log.removeFilter(note)


async def events(trigger: LanceTableVersionTrigger) -> list[TriggerEvent]:
    async with asyncio.timeout(60):
        return [event async for event in trigger.run()]


def trigger(lake: str, table: object, **arguments: Any) -> LanceTableVersionTrigger:
    return LanceTableVersionTrigger(
        table=str(table), lance_conn_id=lake, **{"poll_interval": 0.05, **arguments}
    )


async def test_it_fires_once_with_what_it_saw(lake: str, table: Table) -> None:
    location = table.declare()
    table.advance()
    fired = await events(trigger(lake, table))
    assert [event.payload for event in fired] == [
        {"status": "seen", "table": str(table), "version": 1, "location": location}
    ]


async def test_it_fires_when_the_version_comes(lake: str, table: Table) -> None:
    table.declare()
    table.advance()
    waiting = asyncio.create_task(events(trigger(lake, table, after_version=1)))
    await asyncio.to_thread(table.advance)
    assert [event.payload["version"] for event in await waiting] == [2]


async def test_it_follows_a_connection_that_was_changed(
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


async def test_it_says_why_a_wait_can_never_end_well(lake: str) -> None:
    (event,) = await events(trigger(lake, "orders"))
    assert event.payload["status"] == "failed"
    assert "looking at table 'orders'" in event.payload["message"]


async def test_a_hundred_waits_end_side_by_side(lake: str, table: Table) -> None:
    table.declare()
    waiting = [asyncio.create_task(events(trigger(lake, table))) for _ in range(100)]
    await asyncio.to_thread(table.advance)
    fired = await asyncio.gather(*waiting)
    assert [[event.payload["version"] for event in wait] for wait in fired] == [[1]] * 100


async def test_a_server_that_never_answers_does_not_hold_up_the_event_loop(
    connect: Callable[..., str], deaf_server: str
) -> None:
    conn_id = connect(host=deaf_server, extra={"client.read-timeout": 2})
    waiting = asyncio.create_task(events(trigger(conn_id, "sales$orders")))
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
