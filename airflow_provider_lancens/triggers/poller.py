"""One poll for all waits on a connection: it looks at every table of theirs, tick by tick."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from airflow_provider_lancens.hooks.base import LanceHook
from airflow_provider_lancens.hooks.errors import LanceRetryableError
from airflow_provider_lancens.triggers.collector import set_aside_what_is_loaded
from airflow_provider_lancens.triggers.looks import Looks, Outcome, Stored
from airflow_provider_lancens.triggers.pauses import gathering, pause
from airflow_provider_lancens.triggers.watch import Watch

log = logging.getLogger(__name__)

_LISTINGS_AT_ONCE = 8
_REREAD_SECONDS = 30.0
_AT_ONCE = 200
"""Outcomes handed over before the event loop gets its turn: some milliseconds' worth."""


class Poller:
    """Looks at the tables that are watched, from worker threads, for as long as any is.

    A tick costs one call a database with watched tables, all through one connection to the metastore,
    and one listing request for each table whose version the storage decides. A listing that takes
    longer than a tick holds up that table alone.
    """

    def __init__(self, lance_conn_id: str, interval: float) -> None:
        """Poll through an Airflow connection, every `interval` seconds; nothing starts before `watch`."""
        self.is_over = False
        """Whether it ended, and can't be joined any more."""
        self._lance_conn_id = lance_conn_id
        self._interval = interval
        self._watches: dict[str, set[Watch]] = {}
        self._listings: dict[str, asyncio.Task[None]] = {}
        self._looks: Looks | None = None
        self._identity: object = None
        self._reread_at = 0.0
        self._metastore_thread = ThreadPoolExecutor(1, "lance-metastore")
        self._storage_threads = ThreadPoolExecutor(_LISTINGS_AT_ONCE, "lance-storage")
        self._task: asyncio.Task[None] | None = None

    def watch(self, table: str) -> Watch:
        """Take one more wait in; the first one starts the poll."""
        watch = Watch(table)
        self._watches.setdefault(table, set()).add(watch)
        if self._task is None:
            set_aside_what_is_loaded()
            # In a context of its own: the poll must not log as the task whose wait happened to be first.
            context = contextvars.Context()
            self._task = asyncio.get_running_loop().create_task(self._run(), context=context)
        return watch

    def leave(self, watch: Watch) -> None:
        """Let a wait go; the last one ends the poll."""
        watches = self._watches[watch.table]
        watches.discard(watch)
        if not watches:
            del self._watches[watch.table]
        if not self._watches and self._task:
            self.is_over = True
            self._task.cancel()

    async def _run(self) -> None:
        failures = 0
        try:
            await asyncio.sleep(gathering(self._interval))
            while True:
                failures = 0 if await self._poll(anew=failures > 0) else failures + 1
                await asyncio.sleep(pause(self._interval, failures))
        except Exception as error:  # noqa: BLE001 - whatever it is, no wait may go on behind a dead poll
            self.is_over = True
            await self._tell_all(dict.fromkeys(self._watches, error))
        finally:
            self._close()

    async def _poll(self, *, anew: bool) -> bool:
        try:
            looks = await self._current_looks(anew=anew)
        except LanceRetryableError as error:
            log.warning("%s; the waits go on", error)
            await self._tell_all(dict.fromkeys(self._watches, error))
            return False
        return await self._tick(looks)

    async def _tick(self, looks: Looks) -> bool:
        """Look once at everything that is watched; answers whether anybody answered."""
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._metastore_thread, looks.entries, list(self._watches))
        failed = [one for one in found.values() if isinstance(one, LanceRetryableError)]
        if failed:
            log.warning("%s; %d of %d tables, the waits go on", failed[0], len(failed), len(found))
        stored = {table: one for table, one in found.items() if isinstance(one, Stored)}
        await self._tell_all({t: one for t, one in found.items() if not isinstance(one, Stored)})
        await self._list_all(looks, stored)
        return len(failed) < len(found) or not found

    async def _tell_all(self, found: Mapping[str, Outcome]) -> None:
        for turn, (table, outcome) in enumerate(found.items()):
            if turn % _AT_ONCE == 0:
                await asyncio.sleep(0)
            await self._tell(table, outcome)

    async def _tell(self, table: str, outcome: Outcome) -> None:
        for turn, watch in enumerate(tuple(self._watches.get(table, ())), 1):
            watch.tell(outcome)
            if turn % _AT_ONCE == 0:
                await asyncio.sleep(0)

    async def _list_all(self, looks: Looks, stored: Mapping[str, Stored]) -> None:
        for turn, (table, one) in enumerate(stored.items()):
            if turn % _AT_ONCE == 0:
                await asyncio.sleep(0)
            if table not in self._listings:
                self._listings[table] = asyncio.create_task(self._list(looks, table, one.location))

    async def _list(self, looks: Looks, table: str, location: str) -> None:
        loop = asyncio.get_running_loop()
        outcome: Outcome
        try:
            outcome = await loop.run_in_executor(self._storage_threads, looks.stored, table, location)
        except Exception as error:  # noqa: BLE001 - told to the waits on this table, and to no other
            outcome = error
        del self._listings[table]
        await self._tell(table, outcome)

    async def _current_looks(self, *, anew: bool) -> Looks:
        """Read the Airflow connection now and then: a rotated secret or a moved server is followed."""
        now = asyncio.get_running_loop().time()
        if self._looks and not anew and now < self._reread_at:
            return self._looks
        self._reread_at = now + _REREAD_SECONDS
        try:
            return await self._taken(Looks(await LanceHook.afor_connection(self._lance_conn_id)))
        except Exception as error:
            if self._looks is None:
                raise
            # What somebody is in the midst of editing, or can't be read for a moment, ends no wait.
            log.warning("%s; polling goes on through connection %r as it was", error, self._lance_conn_id)
            return self._looks

    async def _taken(self, looks: Looks) -> Looks:
        # In a thread: credentials that expire may have to be fetched for it.
        loop = asyncio.get_running_loop()
        identity = await loop.run_in_executor(self._metastore_thread, looks.identity)
        if self._looks and identity == self._identity:
            return self._looks
        if self._looks:
            log.info("Connection %r was changed; polling goes on through it", self._lance_conn_id)
            self._metastore_thread.submit(self._looks.close)
        self._looks, self._identity = looks, identity
        return looks

    def _close(self) -> None:
        for listing in self._listings.values():
            listing.cancel()
        # Behind whatever call is under way, and without waiting for it on the event loop.
        if self._looks:
            self._metastore_thread.submit(self._looks.close)
        self._metastore_thread.shutdown(wait=False)
        self._storage_threads.shutdown(wait=False, cancel_futures=True)
