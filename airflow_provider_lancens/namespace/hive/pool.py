"""Thread-safe pool of connections to all servers of one metastore."""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from lance_namespace.errors import LanceNamespaceError, ServiceUnavailableError
from thrift.Thrift import TException
from thrift.transport.TTransport import TTransportException

from airflow_provider_lancens.namespace.deadline import Deadline
from airflow_provider_lancens.namespace.hive.connection import Connection, UnreadableReplyError
from airflow_provider_lancens.namespace.hive.settings import ClientSettings, Endpoint

T = TypeVar("T")
Rpc = Callable[[Connection], T]

TRANSPORT_ERRORS = (TTransportException, OSError, EOFError)


class LostReplyError(ServiceUnavailableError):
    """Lost reply (17): a call was sent, and whether it took effect is unknown."""

    def __init__(self, message: str, *, timed_out: bool = False) -> None:
        """Take the message, and whether the reply timed out rather than the connection breaking."""
        super().__init__(message)
        self.timed_out = timed_out


class Pool:
    """Pool of at most ``client.pool-size`` connections, reused across calls and threads.

    If a server fails, the pool switches to the next one in ``uri``, and back in the same way: the server that
    answered last is preferred.
    """

    def __init__(self, settings: ClientSettings, check_server: Callable[[Connection], None]) -> None:
        """Take the settings; nothing is opened.

        Args:
            settings: the servers, and the client settings.
            check_server: raises if a newly connected server isn't of the required kind.
        """
        self._settings = settings
        self._check_server = check_server
        self._preferred = settings.endpoints[0]
        self._reset()
        _POOLS.add(self)

    def read(self, rpc: Rpc[T]) -> T:
        """Make a read-only call; retry it if its reply is lost.

        Raises:
            ServiceUnavailableError: (17) no server answered; the message names each one tried.
        """
        servers = len(self._settings.endpoints)
        deadline = self._deadline()
        for tries in itertools.count(1):
            try:
                return self._call_once(rpc, deadline)
            except LostReplyError as error:
                # After a broken connection, even the only server is tried again: it may have been restarted.
                # After a timeout, the same server would time out again.
                if deadline.is_over or tries >= (servers if error.timed_out else max(2, servers)):
                    raise
        raise AssertionError("unreachable")

    def write(self, rpc: Rpc[T]) -> T:
        """Make a call exactly once.

        Raises:
            LostReplyError: (17) it was sent and its reply lost; verify the change on the server.
            ServiceUnavailableError: (17) no server could be reached, so nothing was sent.
        """
        return self._call_once(rpc, self._deadline())

    def close(self) -> None:
        """Close the idle connections."""
        _close_all(self._idle)

    def _reset(self) -> None:
        """Forget all connections without closing them."""
        self._slots = threading.BoundedSemaphore(self._settings.pool_size)
        self._idle: deque[Connection] = deque()
        weakref.finalize(self, _close_all, self._idle).atexit = False

    def _deadline(self) -> Deadline:
        """Return the deadline of a whole call: waiting, connecting and replies, over all servers."""
        seconds = self._settings.connect_timeout + self._settings.read_timeout
        return Deadline(seconds * len(self._settings.endpoints))

    def _call_once(self, rpc: Rpc[T], deadline: Deadline) -> T:
        # Not a context manager of contextlib's: that sets `__traceback__`, and the exceptions of the
        # newer Thrift bindings can't be changed.
        self._acquire_slot(deadline)
        try:
            return self._use(self._reuse() or self._connect(deadline), rpc, deadline)
        finally:
            self._slots.release()

    def _use(self, connection: Connection, rpc: Rpc[T], deadline: Deadline) -> T:
        connection.deadline = deadline
        try:
            answer = rpc(connection)
        except UnreadableReplyError:
            connection.close()  # the position of the next reply in the stream is unknown
            raise
        except TRANSPORT_ERRORS as error:
            connection.close()
            self._prefer_next(connection.endpoint)
            raise LostReplyError(
                f"metastore {connection.endpoint} did not respond: {_reason(error)}; servers: "
                f"{self._settings}",
                timed_out=isinstance(error, TimeoutError),
            ) from error
        except (TException, LanceNamespaceError):
            self._idle.append(connection)  # the server replied with an error: the connection is intact
            raise
        except BaseException:  # after any interruption, such as the task's timeout, a reply may still follow
            connection.close()
            raise
        self._idle.append(connection)
        return answer

    def _acquire_slot(self, deadline: Deadline) -> None:
        try:
            seconds = deadline.at_most(self._settings.read_timeout).left()
        except TimeoutError:
            seconds = 0
        if not self._slots.acquire(timeout=seconds):
            raise ServiceUnavailableError(
                f"all {self._settings.pool_size} connections to {self._settings} stayed busy for "
                f"{seconds:.3g} s; raise client.pool-size"
            )

    def _reuse(self) -> Connection | None:
        with contextlib.suppress(IndexError):
            while True:
                connection = self._idle.pop()
                if not connection.is_stale:
                    return connection
                connection.close()
        return None

    def _connect(self, deadline: Deadline) -> Connection:
        deadline = deadline.at_most(self._settings.connect_timeout)
        endpoints = self._by_preference()
        reasons: list[str] = []
        for left, endpoint in zip(range(len(endpoints), 0, -1), endpoints, strict=True):
            try:
                connection = self._open(endpoint, Deadline(deadline.left(left)))
            except TRANSPORT_ERRORS as error:
                reasons.append(f"{endpoint}: {_reason(error)}")
                continue
            self._preferred = endpoint
            return connection
        raise ServiceUnavailableError(
            f"cannot reach the metastore; tried {'; '.join(reasons)}. Check property 'uri' and that "
            "the metastore is running"
        )

    def _open(self, endpoint: Endpoint, deadline: Deadline) -> Connection:
        connection = Connection(endpoint, self._settings, deadline)
        try:
            self._check_server(connection)
        except BaseException:  # nobody else would close the connection
            connection.close()
            raise
        return connection

    def _by_preference(self) -> list[Endpoint]:
        endpoints = self._settings.endpoints
        start = endpoints.index(self._preferred)
        return [*endpoints[start:], *endpoints[:start]]

    def _prefer_next(self, endpoint: Endpoint) -> None:
        # The server's other connections are most likely dead, too.
        endpoints = self._settings.endpoints
        self._preferred = endpoints[(endpoints.index(endpoint) + 1) % len(endpoints)]
        self.close()


_POOLS: weakref.WeakSet[Pool] = weakref.WeakSet()


def _reset_after_fork() -> None:
    # The sockets are the parent's too, and two processes on one would mix replies; pool slots that were
    # taken by other threads of the parent would never be released here.
    for pool in _POOLS:
        pool._reset()


os.register_at_fork(after_in_child=_reset_after_fork)


def _close_all(connections: deque[Connection]) -> None:
    with contextlib.suppress(IndexError):
        while True:
            connections.pop().close()


def _reason(error: BaseException) -> str:
    return str(error).strip() or type(error).__name__
