"""Watched assets: commits of maintenance start no DAG by default."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import lance
import pytest

from airflow_provider_lancens.assets.table_watcher import watched_table
from airflow_provider_lancens.triggers.table_advanced_trigger import LanceTableAdvancedTrigger
from tests.integration.airflow.tables import Table

pytestmark = pytest.mark.thorough


@pytest.fixture(params=["storage", "impl"])
def rows(request: pytest.FixtureRequest, table: Table) -> Table:
    """A table at version 2, of two fragments."""
    table.declare(managed_by=request.param)
    table.advance()
    table.advance()
    return table


def maintain(table: Table) -> int:
    """Build an index and compact, and return the version."""
    data = lance.dataset(namespace_client=table.namespace, table_id=table.id)
    data.create_scalar_index("n", "BTREE")
    data.optimize.compact_files()
    return int(lance.dataset(namespace_client=table.namespace, table_id=table.id).version)


def trigger_of(table: Table, lake: str, **arguments: Any) -> LanceTableAdvancedTrigger:
    (watcher,) = watched_table(str(table), lake, **arguments).watchers
    trigger = watcher.trigger
    assert isinstance(trigger, LanceTableAdvancedTrigger)
    trigger.poll_interval = 0.05
    return trigger


async def next_event(events: AsyncIterator[Any], within: float = 300) -> tuple[int | None, int]:
    event = (await asyncio.wait_for(anext(events), within)).payload
    return event["previous_version"], event["version"]


async def test_maintenance_emits_no_event_and_later_rows_do(rows: Table, lake: str) -> None:
    async with aclosing(trigger_of(rows, lake).run()) as events:  # type: ignore[type-var]
        assert await next_event(events) == (None, 2)
        coming = asyncio.ensure_future(next_event(events))

        maintained = await asyncio.to_thread(maintain, rows)
        await asyncio.wait([coming], timeout=2)
        assert not coming.done()

        newest = await asyncio.to_thread(rows.advance)
        assert newest == maintained + 1
        assert await coming == (2, newest)


async def test_maintenance_during_downtime_emits_no_event(rows: Table, lake: str) -> None:
    maintain(rows)
    async with aclosing(trigger_of(rows, lake, after_version=2).run()) as events:  # type: ignore[type-var]
        coming = asyncio.ensure_future(next_event(events))
        await asyncio.wait([coming], timeout=2)
        assert not coming.done()

        newest = await asyncio.to_thread(rows.advance)
        assert await coming == (2, newest)


async def test_without_data_only_maintenance_emits_an_event(rows: Table, lake: str) -> None:
    async with aclosing(trigger_of(rows, lake, data_only=False).run()) as events:  # type: ignore[type-var]
        assert await next_event(events) == (None, 2)
        await asyncio.to_thread(maintain, rows)
        assert (await next_event(events))[1] > 2
