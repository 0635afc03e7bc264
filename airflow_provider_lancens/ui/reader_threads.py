"""Blocking reads for the event loop: in threads of their own, each with a deadline."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")

THREADS = 8
WAITING = 64
SECONDS = 20.0


class TooManyReadsError(RuntimeError):
    """So many reads are under way that another one would only wait."""


class ReaderThreads:
    """Runs blocking calls, apart from the threads in which the API server runs its own.

    A call that misses its deadline goes on in its thread, since a thread can't be stopped, but its result is
    ignored; one that hasn't begun never does.

    Args:
        threads: calls at a time.
        waiting: calls that may be under way, further ones are refused.
        seconds: the deadline of each call, including its wait for a thread.
    """

    def __init__(self, threads: int = THREADS, waiting: int = WAITING, seconds: float = SECONDS) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="lance-page")
        self._under_way = threading.Semaphore(waiting)
        self._seconds = seconds

    async def run(
        self, call: Callable[Arguments, Answer], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Answer:
        """Return what a call returns, or raise what it raises.

        Raises:
            TimeoutError: it missed the deadline.
            TooManyReadsError: too many others are under way.
        """
        if not self._under_way.acquire(blocking=False):
            raise TooManyReadsError
        future = self._pool.submit(partial(call, *args, **kwargs))
        # Released when the thread is done, which may be long after the deadline.
        future.add_done_callback(lambda _: self._under_way.release())
        return await asyncio.wait_for(asyncio.wrap_future(future), self._seconds)
