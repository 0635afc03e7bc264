"""Worker threads of a triggerer, and imports in them, that delay neither its event loop nor its end."""

from __future__ import annotations

import gc
import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, TypeVar

Answer = TypeVar("Answer")
_Task = tuple[Future[Any], Callable[[], Any]]


class DaemonThreads(Executor):
    """An executor with daemon threads, started as needed.

    Python joins the threads of its own `ThreadPoolExecutor` before the process ends, so that one call to an
    unresponsive server would delay the end of the process for that call's timeout.
    """

    def __init__(self, most: int, name: str) -> None:
        """Set the maximum number of threads, and the prefix of their names."""
        self._most = most
        self._name = name
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._unfinished = 0
        self._cancelled = threading.Event()
        self._is_shut_down = False

    def submit(self, call: Callable[..., Answer], /, *args: Any, **kwargs: Any) -> Future[Answer]:
        """Run a call in one of the threads.

        Raises:
            RuntimeError: it was shut down.
        """
        future: Future[Answer] = Future()
        with self._lock:
            if self._is_shut_down:
                raise RuntimeError(f"{self._name}: no calls are accepted after the shutdown")
            self._unfinished += 1
            self._tasks.put((future, partial(call, *args, **kwargs)))
            if self._threads < min(self._most, self._unfinished):
                self._threads += 1
                name = f"{self._name}_{self._threads}"
                threading.Thread(target=self._work, name=name, daemon=True).start()
        return future

    def shutdown(self, wait: bool = False, *, cancel_futures: bool = False) -> None:
        """Accept no more calls, and end each thread after the queued calls.

        Args:
            wait: not supported, since a thread may be stuck in a call.
            cancel_futures: whether to cancel calls that haven't started.
        """
        if wait:
            raise NotImplementedError("these threads cannot be waited for")
        with self._lock:
            self._is_shut_down = True
            if cancel_futures:
                self._cancelled.set()
            for _ in range(self._threads):
                self._tasks.put(None)

    def _work(self) -> None:
        while task := self._tasks.get():
            future, call = task
            if self._cancelled.is_set():
                future.cancel()
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call())
                except BaseException as error:  # noqa: BLE001 - raised where the result is waited for
                    future.set_exception(error)
            del task, future, call  # an idle thread must not keep what a call returned
            with self._lock:
                self._unfinished -= 1


@cache
def exclude_loaded_objects_from_gc() -> None:
    """Exclude all existing objects from garbage collection: mainly modules, classes and functions.

    Only once per process: objects in cycles at that moment are never collected, so that repeating it would
    leak. Reference counting frees all other objects as usual.
    """
    gc.freeze()


@contextmanager
def importing_without_gc() -> Iterator[None]:
    """Disable garbage collection while libraries load, and exclude their objects from it; also only once."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        _exclude_imported_objects_from_gc()
        if was_enabled:
            gc.enable()


@cache
def _exclude_imported_objects_from_gc() -> None:
    gc.freeze()
