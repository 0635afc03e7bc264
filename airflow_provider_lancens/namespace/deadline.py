"""Deadline shared by several steps, including calls without a timeout of their own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


class Deadline:
    """Point in time by which several steps must be done together."""

    def __init__(self, seconds: float) -> None:
        """Start now."""
        self._seconds = seconds
        self._end = time.monotonic() + seconds

    @property
    def is_over(self) -> bool:
        """Whether no time is left."""
        return time.monotonic() >= self._end

    def left(self, shares: int = 1) -> float:
        """Return the remaining seconds, divided by `shares`.

        Raises:
            TimeoutError: no time is left.
        """
        seconds = self._end - time.monotonic()
        if seconds <= 0:
            raise self.error()
        return seconds / shares

    def at_most(self, seconds: float) -> Deadline:
        """Return the earlier of this deadline and `seconds` from now."""
        return Deadline(seconds) if time.monotonic() + seconds < self._end else self

    def error(self, subject: str = "") -> TimeoutError:
        """Return the exception for an exceeded deadline, naming what took too long."""
        return TimeoutError(f"{subject}timed out after {self._seconds:.3g} s")


def within(deadline: Deadline, subject: str, call: Callable[[], T]) -> T:
    """Run a blocking call that takes no timeout, and stop waiting for it at the deadline.

    The call runs in a daemon thread: after a timeout it ends later by itself, and never keeps the process
    from exiting.

    Args:
        deadline: how long to wait.
        subject: what the call does, for the error.
        call: what to run.

    Returns:
        The call's result.

    Raises:
        TimeoutError: the call was not done by the deadline. The call's own exceptions are re-raised.
    """
    seconds = deadline.left()
    result: Future[T] = Future()

    def run() -> None:
        try:
            result.set_result(call())
        except BaseException as error:  # noqa: BLE001 - re-raised in the waiting thread
            result.set_exception(error)

    threading.Thread(target=run, name="lance-metastore-connect", daemon=True).start()
    try:
        return result.result(seconds)
    except TimeoutError:
        if result.done():
            raise
        raise deadline.error(f"{subject} ") from None
