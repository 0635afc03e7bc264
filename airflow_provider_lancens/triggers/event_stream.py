"""Stream of a table's events, and the cursor that stores the last emitted one.

Used by `LanceTableAdvancedTrigger`. The stream has the interface of Airflow 3.3's `SharedStreamProducer`, but
doesn't inherit from it, since older versions don't have it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from typing import Any

from airflow_provider_lancens.hooks.airflow_errors import AirflowException
from airflow_provider_lancens.hooks.lance_hook import LanceHook
from airflow_provider_lancens.hooks.table_checks import data_changed
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.table_status import TableStatus
from airflow_provider_lancens.triggers.shared_poller import subscribe
from airflow_provider_lancens.triggers.worker_threads import DaemonThreads

log = logging.getLogger(__name__)

_PAUSE_AFTER_FAILURE = 60.0
"""Minimum number of seconds between a failed poll and the next poll."""
_CHECKS_AT_ONCE = 4


@dataclass(slots=True)
class TableEvent:
    """A change of a table between two polls."""

    status: TableStatus
    on_settled: Callable[[], Awaitable[None]] | None = None
    """Callback for when the resulting trigger event can no longer be lost."""

    async def settle(self) -> None:
        """Call `on_settled`."""
        if self.on_settled:
            await self.on_settled()


class TableEventStream:
    """Endless stream of one table's events.

    Args:
        lance_conn_id: the Airflow connection.
        table: table identifier.
        poll_interval: seconds between two polls.
    """

    def __init__(self, lance_conn_id: str, table: TableId, poll_interval: float) -> None:
        self._lance_conn_id = lance_conn_id
        self._table = table
        self._poll_interval = poll_interval

    async def stream(self) -> AsyncIterator[TableEvent]:
        """Yield each event; failed polls are logged and repeated."""
        while True:
            try:
                with subscribe(self._lance_conn_id, self._table, self._poll_interval) as subscription:
                    while True:
                        yield TableEvent(await subscription.changed())
            except AirflowException as error:
                # There is no failed task that a user would notice and clear, so it has to recover by itself.
                log.error("%s; still watching", error)
                await asyncio.sleep(max(self._poll_interval, _PAUSE_AFTER_FAILURE))

    async def open_stream(self) -> AsyncIterator[tuple[TableEvent, TableEvent]]:
        """Yield each event for Airflow's shared streams: an item to broadcast, and an item for `advance`."""
        async for change in self.stream():
            yield change, change

    async def advance(self, batch: Sequence[Any]) -> None:
        """Settle the events that Airflow has stored, in order."""
        for item in batch:
            if item.outcome.is_clean:
                await item.broker_payload.settle()

    def get_advance_lane(self, broker_payload: TableEvent) -> None:
        """Use a single lane: all events in order."""

    async def aclose(self) -> None:
        """Do nothing: the stream itself ends its subscription."""


class Cursor:
    """An asset's position in a table's versions.

    Airflow 3.3 keeps it in the asset's state store across restarts. Older versions have no such store: there
    it is kept while the trigger runs.

    Args:
        store: the trigger's ``asset_state_store``, or None.
        table: table identifier.
    """

    def __init__(self, store: Any, table: TableId) -> None:
        self._store = store
        self._table = table
        self._key = ".".join(("lance_version", *table.parts))

    async def read(self) -> TableStatus | None:
        """Return the status of the last event; None if there was none or it isn't stored.

        Raises:
            ValueError: several assets share the trigger, so that the store belongs to none of them.
        """
        if self._store is None:
            return None
        try:
            stored = await self._store.aget(self._key)
        except ValueError as error:
            raise ValueError(
                "several assets are watched by triggers with the same arguments, which Airflow "
                "treats as one trigger: give each LanceTableAdvancedTrigger a cursor= of its own, "
                "such as its asset's name"
            ) from error
        if not isinstance(stored, Mapping):
            return None
        return TableStatus(self._table, stored["location"], stored["version"])

    async def write(self, status: TableStatus) -> None:
        """Store the status of an event; if that fails, the next restart emits it again."""
        if self._store is None:
            return
        try:
            await self._store.aset(self._key, {"version": status.version, "location": status.location})
        except Exception:
            # The event has been emitted. Ending the watcher here would lose the following ones.
            log.exception(
                "Version %d was emitted, but could not be stored: a restart may emit it again", status.version
            )


async def wait_for_data_change(lance_conn_id: str, status: TableStatus, since: int) -> bool | None:
    """Return whether a version after a known one changed data; failed checks are repeated until one succeeds.

    This requires Lance's transactions, so the first such check imports Lance in a worker thread.

    Args:
        lance_conn_id: the Airflow connection, read again for each check.
        status: the status that was polled; its version is the last one to look at.
        since: the last known version.

    Returns:
        False if only compaction, indexing and configuration followed; True also if a clean-up removed the
        transactions to check. None if the check failed, and the table has another status since then.
    """
    while True:
        try:
            hook = await LanceHook.afor_connection(lance_conn_id)
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(_check_threads(), _data_changed, hook, status, since)
        except AirflowException as error:
            # The stream recovers by itself, as from a failed poll: no task fails that a user would clear.
            log.error("%s; polling again in %d seconds", error, _PAUSE_AFTER_FAILURE)
            await asyncio.sleep(_PAUSE_AFTER_FAILURE)


@cache
def _check_threads() -> Executor:
    # asyncio's own threads are not used, since the process joins them when it ends.
    return DaemonThreads(_CHECKS_AT_ONCE, "lance-data-changes")


def _data_changed(hook: LanceHook, status: TableStatus, since: int) -> bool | None:
    with closing(hook):
        try:
            return data_changed(hook, status.table, since, status.version)
        except AirflowException:
            # The table may have been dropped, or recreated: then this check would fail forever.
            now = hook.table_status(status.table)
            # A denial doesn't say whether it is still the same table: then the check is repeated.
            if not now.denial and (now.location, now.version) != (status.location, status.version):
                return None
            raise
