"""Worker threads of a triggerer that do not delay the end of its process."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")
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
        self._canceled = threading.Event()
        self._is_shut_down = False

    def submit(self, call: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Run a call in one of the threads.

        Raises:
            RuntimeError: it was shut down.
        """
        future: Future[T] = Future()
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
                self._canceled.set()
            for _ in range(self._threads):
                self._tasks.put(None)

    def _work(self) -> None:
        while task := self._tasks.get():
            future, call = task
            if self._canceled.is_set():
                future.cancel()
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call())
                except BaseException as error:  # noqa: BLE001 - raised where the result is waited for
                    future.set_exception(error)
            del task, future, call  # an idle thread must not keep what a call returned
            with self._lock:
                self._unfinished -= 1
