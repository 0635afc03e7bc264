"""Blocking reads for the event loop: in dedicated threads, with deadlines and shares of the threads."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")

THREADS = 8
SLOW_THREADS = 24
WAITING = 64
SECONDS = 20.0
SLOW_SECONDS = 2.0
_OF_A_CONNECTION = 20
"""Threads that reads of one connection may hold, a part of all."""
_OF_A_TABLE = 2
_STEP = 0.1


class TooManyReadsError(RuntimeError):
    """So many reads are under way that another one would only wait."""


@dataclass(eq=False)
class _PageRead:
    call: Callable[[], Any]
    limits: dict[str, int]
    """How many threads may be held, by what is read."""
    future: Future[Any] = field(default_factory=Future)
    began: float | None = None
    is_quick: bool = True
    """Whether it counts among `THREADS`."""


class ReaderThreads:
    """Runs blocking calls, apart from the threads in which the API server runs its own.

    A call that misses its deadline goes on in its thread, since a thread can't be stopped, but its result is
    ignored; a call that hasn't begun never does. After some seconds a call counts as slow, and makes room for
    another one. Slow tables of one tenant leave threads to other tables, and slow connections to others.

    Args:
        threads: calls at a time, without slow ones.
        waiting: calls that may be under way, further ones are refused; half of them for one connection.
        seconds: the deadline of each call, including its wait for a thread.
        slow_seconds: after which a call is slow.
    """

    def __init__(
        self,
        threads: int = THREADS,
        waiting: int = WAITING,
        seconds: float = SECONDS,
        slow_seconds: float = SLOW_SECONDS,
    ) -> None:
        self._pool = ThreadPoolExecutor(threads + SLOW_THREADS, thread_name_prefix="lance-page")
        self._threads = threads
        self._waiting = waiting
        self._seconds = seconds
        self._slow_seconds = slow_seconds
        self._lock = threading.Lock()
        self._queue: list[_PageRead] = []
        self._running: set[_PageRead] = set()
        self._under_way: Counter[str] = Counter()

    async def run(self, call: Callable[[], T], conn: str = "", table: str = "") -> T:
        """Return what a call returns, or raise what it raises.

        Args:
            call: the read.
            conn: the connection that it reads; empty for Airflow's database.
            table: the table, if it reads a single one.

        Raises:
            TimeoutError: it missed the deadline.
            TooManyReadsError: too many others are under way.
        """
        limits = {f"connection {conn}": _OF_A_CONNECTION} if conn else {}
        if table:
            limits[f"table {conn} {table}"] = _OF_A_TABLE
        read = _PageRead(call, limits)
        self._enqueue(read)
        answer = asyncio.wrap_future(read.future)
        deadline = time.monotonic() + self._seconds
        try:
            while not answer.done() and (left := deadline - time.monotonic()) > 0:
                await asyncio.wait({answer}, timeout=min(_STEP, left))
                self._make_room(read)
            if not answer.done():
                raise TimeoutError
        finally:
            answer.cancel()  # a call that hasn't begun never does
        result: T = answer.result()
        return result

    def _enqueue(self, read: _PageRead) -> None:
        with self._lock:
            connection = next(iter(read.limits), "")
            is_full = connection and self._under_way[connection] >= max(1, self._waiting // 2)
            if is_full or self._under_way.total() >= self._waiting:
                raise TooManyReadsError
            self._under_way[connection] += 1
            read.future.add_done_callback(lambda _: self._leave(connection))
            self._queue.append(read)
            self._start()

    def _leave(self, connection: str) -> None:
        with self._lock:
            self._under_way[connection] -= 1

    def _make_room(self, read: _PageRead) -> None:
        if read.is_quick and read.began is not None and time.monotonic() - read.began > self._slow_seconds:
            with self._lock:
                read.is_quick = False
                self._start()

    def _start(self) -> None:
        held = Counter(key for read in self._running for key in read.limits)
        quick = sum(read.is_quick for read in self._running)
        for read in [*self._queue]:
            if read.future.cancelled():
                self._queue.remove(read)
            elif (
                quick < self._threads
                and len(self._running) < self._threads + SLOW_THREADS
                and all(held[key] < limit for key, limit in read.limits.items())
            ):
                self._queue.remove(read)
                self._running.add(read)
                held.update(read.limits.keys())
                quick += 1
                self._pool.submit(self._work, read)

    def _work(self, read: _PageRead) -> None:
        try:
            if read.future.set_running_or_notify_cancel():
                read.began = time.monotonic()
                try:
                    answer = read.call()
                except BaseException as error:  # noqa: BLE001 - raised where it is awaited
                    read.future.set_exception(error)
                else:
                    read.future.set_result(answer)
        finally:
            with self._lock:
                self._running.discard(read)
                self._start()
