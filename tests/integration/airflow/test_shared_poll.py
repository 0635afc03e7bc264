"""All waits on one connection share one poll, as counted in calls and connections."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from lance_namespace import DeclareTableRequest, LanceNamespace
from lance_namespace.errors import ServiceUnavailableError

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.hooks.lance_hook import LanceHook
from airflow_provider_lancens.namespace.storage import object_store
from airflow_provider_lancens.triggers.table_version_trigger import LanceTableVersionTrigger
from tests.integration.airflow.tables import Table
from tests.integration.hive.hostile import UNREADABLE
from tests.servers.proxy import Proxy

BATCH = "get_table_objects_by_name_req"
TICK = 0.2


@pytest.fixture
def wire(metastore: MetastoreServer) -> Iterator[Proxy]:
    """A proxy for the metastore that counts and drops calls and connections."""
    with Proxy(metastore.uri) as proxy:
        yield proxy


@pytest.fixture
def lake(wire: Proxy, connect: Callable[..., str], tmp_path: Path) -> str:
    return connect(host=wire.uri, extra={"root": str(tmp_path)})


@pytest.fixture
def tables(namespace: LanceNamespace, database: str) -> Sequence[Table]:
    """Managed tables without data, in one database."""
    made = [Table(namespace, database, f"t_{number}") for number in range(5)]
    made[0].declare()
    for table in made[1:]:
        namespace.declare_table(DeclareTableRequest(id=table.id, properties={"managed_by": "impl"}))
    return made


async def event(lake: str, table: object, **arguments: Any) -> Any:
    trigger = LanceTableVersionTrigger(
        table=str(table), lance_conn_id=lake, **{"poll_interval": TICK, **arguments}
    )
    async with asyncio.timeout(60):
        return (await anext(aiter(trigger.run()))).payload


@asynccontextmanager
async def waiting(lake: str, tables: Sequence[object], **arguments: Any) -> AsyncIterator[list[Any]]:
    tasks = [asyncio.create_task(event(lake, table, **arguments)) for table in tables]
    yield tasks
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def calls(wire: Proxy, name: str, count: int) -> None:
    """Return once the server has received this many more calls."""
    before = wire.calls.count(name)
    async with asyncio.timeout(30):
        while wire.calls.count(name) < before + count:  # noqa: ASYNC110 - another thread counts
            await asyncio.sleep(0.01)


async def test_a_poll_is_one_call_per_database_over_one_connection(
    lake: str, wire: Proxy, tables: Sequence[Table]
) -> None:
    async with waiting(lake, [table for table in tables for _ in range(20)]) as tasks:
        await calls(wire, BATCH, 3)
        assert not any(task.done() for task in tasks)
    assert set(wire.calls) - {"get_catalogs"} == {BATCH}
    assert wire.connections == 1


async def test_waits_with_another_interval_have_their_own_poll(
    lake: str, wire: Proxy, tables: Sequence[Table]
) -> None:
    async with waiting(lake, tables[:1]), waiting(lake, tables[1:2], poll_interval=TICK * 1.5):
        await calls(wire, BATCH, 4)
    assert wire.connections == 2


async def test_the_last_wait_ends_the_poll_and_closes_its_connection(
    lake: str, wire: Proxy, tables: Sequence[Table]
) -> None:
    async with waiting(lake, tables):
        await calls(wire, BATCH, 1)
    await asyncio.sleep(2 * TICK)  # a call in progress may end
    before = len(wire.calls)
    await asyncio.sleep(3 * TICK)
    assert len(wire.calls) == before


async def test_a_wait_that_starts_when_the_last_one_ends_is_served(
    lake: str, tables: Sequence[Table]
) -> None:
    async with waiting(lake, tables[1:]):
        pass
    await asyncio.to_thread(tables[1].advance)
    assert (await event(lake, tables[1]))["version"] == 1


async def test_waits_start_and_end_independently(lake: str, wire: Proxy, tables: Sequence[Table]) -> None:
    async with waiting(lake, tables[1:2]) as (staying,):
        async with waiting(lake, tables[2:]):
            await calls(wire, BATCH, 1)
        await asyncio.to_thread(tables[1].advance)
        assert (await staying)["version"] == 1
    assert wire.connections == 1


async def test_a_failing_table_does_not_affect_other_tables(
    lake: str, namespace: LanceNamespace, tables: Sequence[Table]
) -> None:
    names = [str(tables[1]), "no such name", f"{tables[1].database}$not_there", "no_such_database$t"]
    async with waiting(lake, names) as (good, impossible, missing, homeless):
        assert (await impossible)["status"] == "error"
        await asyncio.to_thread(tables[1].advance)
        assert (await good)["version"] == 1
        assert not missing.done()
        assert not homeless.done()


@pytest.mark.parametrize("name", ["a parameter of 17 MB", "a text of negative length", "nothing"])
async def test_an_unreadable_catalog_table_ends_only_its_own_wait(
    lake: str, wire: Proxy, tables: Sequence[Table], name: str
) -> None:
    unreadable = UNREADABLE[name]
    wire.change_reply(BATCH, lambda asked, reply: unreadable(asked, reply) if b"t_2" in asked else reply)
    async with waiting(lake, tables[1:3]) as (good, bad):
        failed = await bad
        assert failed["status"] == "error"
        assert f"cannot read table {tables[2]}" in failed["message"]
        await asyncio.to_thread(tables[1].advance)
        assert (await good)["version"] == 1


async def test_a_server_that_cannot_read_any_table_ends_no_wait(
    lake: str, wire: Proxy, tables: Sequence[Table]
) -> None:
    fault = wire.change_reply(BATCH, UNREADABLE["a text of negative length"])
    async with waiting(lake, tables) as tasks:
        await calls(wire, BATCH, 20)
        assert not any(task.done() for task in tasks)
        fault.times = 0
        await asyncio.to_thread(tables[1].advance)
        assert (await tasks[1])["version"] == 1


async def test_a_failing_storage_does_not_affect_other_tables(
    lake: str, namespace: LanceNamespace, tables: Sequence[Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    far = Table(namespace, tables[0].database, "far")
    failing_location = await asyncio.to_thread(far.declare)
    reading = object_store.latest_version

    def failing(
        location: str, options: Mapping[str, str]
    ) -> int | None:  # this fault can't be caused on a local disk
        if location == failing_location:
            raise ServiceUnavailableError("storage did not answer")
        return reading(location, options)

    monkeypatch.setattr(object_store, "latest_version", failing)
    async with waiting(lake, [far, tables[0]]) as (unlucky, good):
        await asyncio.to_thread(tables[0].advance)
        assert (await good)["version"] == 1
        assert not unlucky.done()
        monkeypatch.setattr(object_store, "latest_version", reading)
        await asyncio.to_thread(far.advance)
        assert (await unlucky)["version"] == 1


async def test_an_unreachable_server_is_logged_once_and_the_waits_continue(
    lake: str, wire: Proxy, tables: Sequence[Table], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    async with waiting(lake, tables[1:3]) as (one, other):
        await calls(wire, BATCH, 1)
        wire.lose_reply(BATCH, times=4)
        await calls(wire, BATCH, 5)
        await asyncio.to_thread(tables[1].advance)
        assert (await one)["version"] == 1
        assert not other.done()
    complaints = [r for r in caplog.records if r.getMessage().endswith("; still waiting")]
    assert len(complaints) == 2  # one per wait


async def test_the_connection_is_read_once_for_polls_that_succeed(
    lake: str, wire: Proxy, tables: Sequence[Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    original = LanceHook.afor_connection

    async def counted(conn_id: str) -> LanceHook:
        read.append(conn_id)
        return await original(conn_id)

    monkeypatch.setattr(LanceHook, "afor_connection", counted)
    async with waiting(lake, tables):
        await calls(wire, BATCH, 5)
    assert read == [lake]


async def test_a_connection_that_cannot_be_read_at_first_ends_no_wait(
    lake: str,
    wire: Proxy,
    connect: Callable[..., str],
    tables: Sequence[Table],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    monkeypatch.delenv(f"AIRFLOW_CONN_{lake.upper()}")
    async with waiting(lake, tables[1:2]) as (wait,):
        async with asyncio.timeout(30):
            while "still waiting" not in caplog.text:  # noqa: ASYNC110 - the poller logs
                await asyncio.sleep(0.01)
        connect(host=wire.uri, extra={"root": str(tmp_path)})
        await asyncio.to_thread(tables[1].advance)
        assert (await wait)["version"] == 1


async def test_a_changed_connection_is_used_without_a_failure(
    lake: str,
    wire: Proxy,
    metastore: MetastoreServer,
    connect: Callable[..., str],
    tables: Sequence[Table],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("airflow_provider_lancens.triggers.shared_poller._REREAD_SECONDS", 0.0)
    with Proxy(metastore.uri) as moved:
        async with waiting(lake, tables[1:]):
            await calls(wire, BATCH, 1)
            assert connect(host=moved.uri) == lake
            await calls(moved, BATCH, 2)
        assert moved.connections == 1
