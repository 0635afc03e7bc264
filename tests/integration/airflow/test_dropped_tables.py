"""A watched table that is dropped or denied, while the watcher lists or checks its versions."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any, cast

import pytest

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.hooks.lance_hook import LanceHook
from airflow_provider_lancens.hooks.table_checks import data_changed
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.table_status import TableStatus
from airflow_provider_lancens.triggers import event_stream
from airflow_provider_lancens.triggers.table_advanced_trigger import LanceTableAdvancedTrigger
from tests.integration.airflow.folder_tables import ORDERS, Folder


@pytest.fixture
def folder(connect: Callable[..., str], tmp_path: Path) -> Folder:
    return Folder(connect, tmp_path / "lake")


def watched(folder: Folder) -> aclosing[AsyncGenerator[Any]]:
    trigger = LanceTableAdvancedTrigger(table=ORDERS, lance_conn_id=folder.conn_id, poll_interval=0.1)
    return aclosing(cast("AsyncGenerator[Any]", trigger.run()))


async def next_event(events: AsyncGenerator[Any]) -> tuple[int | None, int]:
    event = (await asyncio.wait_for(anext(events), 30)).payload
    return event["previous_version"], event["version"]


class Listings:
    """Listings of versions that reply only when they are released, and the number of polls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.held = threading.Event()
        self.listed = threading.Event()
        self.released = threading.Event()
        self.polls = 0
        read, poll = LanceHook.read_storage_version, LanceHook.poll_tables

        def read_late(hook: LanceHook, *arguments: Any) -> Any:
            found = read(hook, *arguments)
            if self.held.is_set():
                self.listed.set()
                assert self.released.wait(30)
            return found

        def counted_poll(hook: LanceHook, *arguments: Any) -> Any:
            polled = poll(hook, *arguments)
            self.polls += 1
            return polled

        monkeypatch.setattr(LanceHook, "read_storage_version", read_late)
        monkeypatch.setattr(LanceHook, "poll_tables", counted_poll)

    async def poll(self, times: int) -> None:
        """Return after further polls."""
        last = self.polls + times
        async with asyncio.timeout(30):
            while self.polls < last:  # noqa: ASYNC110 - another thread counts
                await asyncio.sleep(0.01)


async def test_a_listing_that_replies_after_the_drop_emits_no_event(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    listings = Listings(monkeypatch)
    folder.create(versions=3)
    async with watched(folder) as events:
        assert await next_event(events) == (None, 3)
        coming = asyncio.ensure_future(next_event(events))
        listings.held.set()
        assert await asyncio.to_thread(listings.listed.wait, 30)
        await asyncio.to_thread(folder.drop)
        await listings.poll(2)
        listings.held.clear()
        listings.released.set()
        await listings.poll(2)
        await asyncio.to_thread(folder.create, versions=1)

        assert await coming == (None, 1)


async def test_a_check_of_a_table_that_was_dropped_is_given_up(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped = threading.Event()

    def check_dropped(*arguments: Any) -> bool:
        if not dropped.is_set():
            folder.drop()
            dropped.set()
        return data_changed(*arguments)

    monkeypatch.setattr(event_stream, "data_changed", check_dropped)
    folder.create(versions=3)
    async with watched(folder) as events:
        assert await next_event(events) == (None, 3)
        coming = asyncio.ensure_future(next_event(events))
        await asyncio.to_thread(folder.advance)
        assert await asyncio.to_thread(dropped.wait, 30)
        await asyncio.to_thread(folder.create, versions=1)

        assert await coming == (None, 1)


async def test_a_check_is_repeated_if_access_was_denied_for_a_moment(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    denied = TableStatus(TableId.parse(ORDERS), denial="access denied")
    checks: list[Any] = []

    def check_denied(*arguments: Any) -> bool:
        checks.append(arguments)
        if len(checks) == 1:
            raise AirflowFailException("access denied (code 15, PERMISSION_DENIED)")
        return data_changed(*arguments)

    monkeypatch.setattr(event_stream, "data_changed", check_denied)
    monkeypatch.setattr(event_stream, "_PAUSE_AFTER_FAILURE", 0.1)
    monkeypatch.setattr(LanceHook, "table_status", lambda *_: denied)
    folder.create(versions=3)
    async with watched(folder) as events:
        assert await next_event(events) == (None, 3)
        await asyncio.to_thread(folder.advance)

        assert await next_event(events) == (3, 4)
