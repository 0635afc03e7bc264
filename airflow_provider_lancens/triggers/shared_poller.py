"""One poller for all waits on a connection at one interval, which polls all their tables in each tick.

A wait subscribes to a table and needs no connections, threads or back-off of its own: all subscriptions in
an event loop with the same connection and interval share one `Poller`.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import random
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from weakref import WeakKeyDictionary

from airflow_provider_lancens.hooks import metrics
from airflow_provider_lancens.hooks.airflow_errors import (
    AirflowFailException,
    AirflowNotFoundException,
    LanceRetryableError,
)
from airflow_provider_lancens.hooks.lance_hook import LanceHook
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.table_status import TableStatus, without_numbers
from airflow_provider_lancens.triggers.worker_threads import DaemonThreads

log = logging.getLogger(__name__)

_LISTINGS_AT_ONCE = 8
_REREAD_SECONDS = 600.0
"""How often a connection is read that polls without failures; Airflow may log a line each time."""
_JUST_READ_SECONDS = 1.0
"""How old the settings of a connection are at most that aren't read again where they are refused."""
_REFUSED = frozenset({15, 16})
"""Codes of denied access and of refused credentials: new ones in the connection may be accepted."""
_AT_ONCE = 200
"""Statuses delivered before yielding to the event loop: a few milliseconds' worth."""
_JITTER = 0.1
_SHORTEST_PAUSE = 0.05
"""Seconds; an interval of 0 doesn't occupy the metastore without a pause."""
_LONGEST_BACKOFF = 60.0
_LONGEST_GATHERING = 1.0
"""Seconds before the first poll, during which a restarted triggerer resumes other waits."""

_POLLERS: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, float], Poller]] = WeakKeyDictionary()


@contextmanager
def subscribe(lance_conn_id: str, table: TableId, interval: float) -> Iterator[Subscription]:
    """Subscribe to a table's status for the duration of a block, in a running event loop.

    The first subscription to a connection starts its poller, the last one ends it.

    Args:
        lance_conn_id: the Airflow connection.
        table: the table's identifier.
        interval: seconds between two polls.
    """
    pollers = _POLLERS.setdefault(asyncio.get_running_loop(), {})
    key = lance_conn_id, interval
    poller = pollers.get(key)
    if poller is None or poller.is_over:
        poller = pollers[key] = Poller(lance_conn_id, interval)
    subscription = Subscription()
    poller.subscriptions.setdefault(table, set()).add(subscription)
    try:
        yield subscription
    finally:
        poller.subscriptions[table].discard(subscription)
        if not poller.subscriptions[table]:
            del poller.subscriptions[table]
        if not poller.subscriptions:
            poller.stop()
            if pollers.get(key) is poller:
                del pollers[key]


@dataclass(slots=True, eq=False)
class Subscription:
    """One wait's subscription to a table, and the last status that it received.

    A slow wait skips outdated statuses and receives the newest.
    """

    _latest: TableStatus | Exception | None = None
    _known: TableStatus | None = None
    _is_new: bool = False
    _waiting: asyncio.Future[None] | None = None

    async def changed(self) -> TableStatus:
        """Wait for a status that differs from the last one, and return the newest.

        A retryable error is logged once, and the wait goes on.

        Raises:
            AirflowFailException: polling the table can never succeed.
        """
        while True:
            while not self._is_new:
                self._waiting = asyncio.get_running_loop().create_future()
                await self._waiting
            self._is_new, self._waiting = False, None
            if isinstance(self._latest, TableStatus):
                return self._latest
            if isinstance(self._latest, LanceRetryableError):
                log.warning("%s; still waiting", self._latest)
            elif isinstance(self._latest, AirflowFailException):
                raise AirflowFailException(str(self._latest))  # a new error: many waits may get the same one
            elif self._latest is not None:
                raise self._latest

    @property
    def is_missing(self) -> bool:
        """Whether the table doesn't exist, as far as is known."""
        return self._known is not None and self._known.location is None

    def __str__(self) -> str:
        known = "No poll has succeeded" if self._known is None else str(self._known)
        failed = isinstance(self._latest, Exception)
        return f"{known}; the last poll failed: {self._latest}" if failed else known

    def notify(self, status: TableStatus | Exception) -> None:
        """Deliver the result of a poll, unless it is the same as the last one."""
        if isinstance(status, TableStatus):
            self._known = status
        if status == self._latest or _is_same_failure(status, self._latest):
            return
        self._latest, self._is_new = status, True
        if self._waiting and not self._waiting.done():
            self._waiting.set_result(None)


def _is_same_failure(result: object, other: object) -> bool:
    """Return whether two errors differ at most in the numbers of their texts, such as durations."""
    return isinstance(result, Exception) and without_numbers(repr(result)) == without_numbers(repr(other))


@dataclass(eq=False)
class Poller:
    """Polls the subscribed tables from worker threads until it is stopped.

    A tick costs one call per database with subscribed tables, all through one connection to the metastore,
    and one listing request per table whose version authority is the storage. A listing that takes longer than
    a tick delays only that table. Polls that fail are repeated, with increasing pauses and with the Airflow
    connection read again, so that a metastore may be restarted or moved.
    """

    lance_conn_id: str
    interval: float
    """Seconds between two polls."""
    subscriptions: dict[TableId, set[Subscription]] = field(default_factory=dict)
    is_over: bool = False
    """Whether it has ended and accepts no more subscriptions."""

    def __post_init__(self) -> None:
        self._hook: LanceHook | None = None
        self._polled: Mapping[TableId, object] = {}
        """Result of the last poll."""
        self._identity: object = None
        self._logged_failure: Exception | None = None
        self._read_at = 0.0
        self._reading = asyncio.Lock()
        self._listings: dict[TableId, asyncio.Task[None]] = {}
        self._metastore_thread = DaemonThreads(1, "lance-metastore")
        self._storage_threads = DaemonThreads(_LISTINGS_AT_ONCE, "lance-storage")
        # The poller has a new context: it must not log as the task that happened to subscribe first.
        context = contextvars.Context()
        self._task = asyncio.get_running_loop().create_task(self._run(), context=context)

    def stop(self) -> None:
        """End the polls, without waiting for the poll in progress."""
        self.is_over = True
        self._task.cancel()

    async def _run(self) -> None:
        failures = 0
        try:
            await asyncio.sleep(min(self.interval, _LONGEST_GATHERING))
            while True:
                failures = 0 if await self._poll(reread=failures > 0) else failures + 1
                await asyncio.sleep(pause(self.interval, failures))
        except Exception as error:  # noqa: BLE001 - after any error, no wait may continue on a dead poller
            self.is_over = True
            await self._notify(dict.fromkeys(self.subscriptions, error))
        finally:
            self._close()

    async def _poll(self, *, reread: bool) -> bool:
        """Poll all subscribed tables once; return whether any poll succeeded."""
        loop = asyncio.get_running_loop()
        polled: Mapping[TableId, TableStatus | Exception]
        try:
            if self._hook is None or reread or loop.time() >= self._read_at + _REREAD_SECONDS:
                async with self._reading:
                    self._hook = await self._read_connection()
            hook = self._hook
            polled = await self._polled_by(hook)
            # A refusal must not end waits whose credentials have been replaced since they were read.
            if any(map(_is_refused, polled.values())) and (newer := await self._newer(hook)) is not hook:
                polled = await self._polled_by(newer)
            self._polled = polled
        except LanceRetryableError as error:
            polled = dict.fromkeys(self.subscriptions, error)
        failed = [error for error in polled.values() if isinstance(error, LanceRetryableError)]
        if failed and not _is_same_failure(failed[0], self._logged_failure):
            log.warning("%s; %d of %d tables failed, still polling", failed[0], len(failed), len(polled))
        self._logged_failure = failed[0] if failed else None
        await self._notify(polled)
        return len(failed) < len(polled) or not polled

    async def _polled_by(self, hook: LanceHook) -> Mapping[TableId, TableStatus | Exception]:
        tables = list(self.subscriptions)
        waits = sum(map(len, self.subscriptions.values()))
        return await asyncio.get_running_loop().run_in_executor(
            self._metastore_thread, self._counted_poll, hook, tables, waits
        )

    def _counted_poll(
        self, hook: LanceHook, tables: list[TableId], waits: int
    ) -> Mapping[TableId, TableStatus | Exception]:
        """Poll, in a worker thread: the client of metrics may look up the address of its server."""
        began = time.monotonic()
        count = partial(metrics.count_poll, self.lance_conn_id, tables=len(tables), waits=waits)
        try:
            polled = hook.poll_tables(tables, self._polled)
        except LanceRetryableError:
            count(time.monotonic() - began, failed=len(tables))
            raise
        failed = sum(isinstance(result, Exception) for result in polled.values())
        count(time.monotonic() - began, failed=failed)
        return polled

    def _counted_listing(self, hook: LanceHook, status: TableStatus) -> TableStatus:
        with metrics.counted_listing(self.lance_conn_id, status.table):
            return hook.read_storage_version(status)

    async def _notify(self, statuses: Mapping[TableId, TableStatus | Exception]) -> None:
        """Deliver the statuses of tables, and start the listings that they require."""
        for turn, (table, status) in enumerate(statuses.items()):
            if turn % _AT_ONCE == 0:
                await asyncio.sleep(0)
            if self._hook and isinstance(status, TableStatus) and status.needs_listing:
                if table not in self._listings:
                    self._listings[table] = asyncio.create_task(self._list(self._hook, status))
                continue
            for number, subscription in enumerate(tuple(self.subscriptions.get(table, ())), 1):
                subscription.notify(status)
                if number % _AT_ONCE == 0:
                    await asyncio.sleep(0)

    async def _list(self, hook: LanceHook, status: TableStatus) -> None:
        listed = await self._listed_by(hook, status)
        if _is_refused(listed) and (newer := await self._newer(hook)) is not hook:
            listed = await self._listed_by(newer, status)
        del self._listings[status.table]
        polled = self._polled.get(status.table)
        # While it was listed, a later poll may have found the table dropped, or recreated.
        if not isinstance(polled, TableStatus) or polled == status:
            await self._notify({status.table: listed})

    async def _listed_by(self, hook: LanceHook, status: TableStatus) -> TableStatus | Exception:
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._storage_threads, self._counted_listing, hook, status)
        except Exception as error:  # noqa: BLE001 - reported only to the waits on this table
            return error

    async def _newer(self, hook: LanceHook) -> LanceHook:
        """Return the hook of the connection as it is now; the same one if it hasn't changed.

        Args:
            hook: the hook whose credentials were refused, perhaps for many tables at once.
        """
        async with self._reading:
            age = asyncio.get_running_loop().time() - self._read_at
            if self._hook in (None, hook) and age >= _JUST_READ_SECONDS:
                self._hook = await self._read_connection()
            return self._hook or hook

    async def _read_connection(self) -> LanceHook:
        """Return the hook of the connection, read again to follow a rotated secret or a moved server."""
        loop = asyncio.get_running_loop()
        self._read_at = loop.time()
        try:
            hook = await LanceHook.afor_connection(self.lance_conn_id)
            # The hook is opened in a thread: it may have to fetch temporary credentials.
            return await loop.run_in_executor(self._metastore_thread, self._opened, hook)
        except Exception as error:
            if self._hook is None:
                if isinstance(error, AirflowNotFoundException):  # also if a secrets backend doesn't respond
                    raise LanceRetryableError(str(error)) from error
                raise
            # A connection that is being edited, or temporarily can't be read, must not end any wait.
            log.warning(
                "%s; polling continues with the previous settings of connection %r", error, self.lance_conn_id
            )
            return self._hook

    def _opened(self, hook: LanceHook) -> LanceHook:
        """Return the hook with its namespace opened, or the current one if the connection is unchanged."""
        identity = type(hook), hook.namespace_properties()
        if self._hook and identity == self._identity:
            return self._hook
        import airflow_provider_lancens.namespace.storage.object_store  # noqa: F401 - listings need it

        hook.get_conn()
        if self._hook:
            log.info("Connection %r has changed; polling continues with the new settings", self.lance_conn_id)
            self._hook.close()
        self._identity = identity
        return hook

    def _close(self) -> None:
        for listing in self._listings.values():
            listing.cancel()
        # The hook is closed after the call in progress, without waiting for it on the event loop.
        if self._hook:
            self._metastore_thread.submit(self._hook.close)
        self._metastore_thread.shutdown(wait=False)
        self._storage_threads.shutdown(wait=False, cancel_futures=True)


def _is_refused(polled: object) -> bool:
    return isinstance(polled, Exception) and getattr(polled, "code", None) in _REFUSED


def pause(interval: float, failures: int) -> float:
    """Return the seconds until the next poll: doubled with each failure, with jitter.

    Args:
        interval: seconds between two successful polls.
        failures: number of consecutive failures.
    """
    shortest = max(_SHORTEST_PAUSE, interval)
    longest = max(shortest, _LONGEST_BACKOFF)
    doubled = shortest * 2.0 ** min(failures, 10)
    return min(doubled, longest) * random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311 - not a secret
