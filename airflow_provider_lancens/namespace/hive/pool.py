"""A thread-safe pool of connections over all servers of one metastore."""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from lance_namespace.errors import LanceNamespaceError, ServiceUnavailableError
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TException
from thrift.transport.TTransport import TTransportException

from airflow_provider_lancens.namespace.hive.connection import Connection
from airflow_provider_lancens.namespace.hive.settings import ClientSettings, Endpoint

Answer = TypeVar("Answer")
Rpc = Callable[[Connection], Answer]

TRANSPORT_ERRORS = (TTransportException, TProtocolException, OSError, EOFError)


class LostReplyError(ServiceUnavailableError):
    """A call was sent and its answer never came: whether it took effect is unknown (code 17)."""

    def __init__(self, message: str, *, timed_out: bool = False) -> None:
        """Take the message, and whether the server was silent rather than gone."""
        super().__init__(message)
        self.timed_out = timed_out


class Pool:
    """At most ``client.pool-size`` connections, reused across calls and threads.

    A server that fails is left for the next one named in ``uri``, both ways: whichever answered
    last is asked first.
    """

    def __init__(self, settings: ClientSettings, admit: Callable[[Connection], None]) -> None:
        """Take the settings; nothing is opened.

        Args:
            settings: the servers, and how they are reached.
            admit: raises where a newly connected server isn't the kind that is needed.
        """
        self._settings = settings
        self._admit = admit
        self._preferred = settings.endpoints[0]
        self._forget()
        _POOLS.add(self)

    def read(self, rpc: Rpc[Answer]) -> Answer:
        """Make a call that changes nothing; where its answer is lost, it is made again.

        Raises:
            ServiceUnavailableError: (17) no server answered; the message names each that was tried.
        """
        servers = len(self._settings.endpoints)
        for tries in itertools.count(1):
            try:
                return self.write(rpc)
            except LostReplyError as error:
                # A broken connection is worth a second try even of the only server: it may have been
                # restarted. One that was silent for the whole timeout would be silent again.
                if tries >= (servers if error.timed_out else max(2, servers)):
                    raise
        raise AssertionError("unreachable")

    def write(self, rpc: Rpc[Answer]) -> Answer:
        """Make a call exactly once.

        Raises:
            LostReplyError: (17) it was sent and no answer came; ask the server what happened.
            ServiceUnavailableError: (17) no server could be reached, so nothing was sent.
        """
        # Not a context manager of contextlib's: that sets `__traceback__`, and the exceptions of the
        # newer Thrift bindings can't be changed.
        self._take_turn()
        try:
            return self._use(self._reuse() or self._connect(), rpc)
        finally:
            self._turns.release()

    def close(self) -> None:
        """Close the idle connections."""
        _close_all(self._idle)

    def _forget(self) -> None:
        """Start without connections, closing none."""
        self._turns = threading.BoundedSemaphore(self._settings.pool_size)
        self._idle: deque[Connection] = deque()
        weakref.finalize(self, _close_all, self._idle).atexit = False

    def _use(self, connection: Connection, rpc: Rpc[Answer]) -> Answer:
        try:
            answer = rpc(connection)
        except TRANSPORT_ERRORS as error:
            connection.close()
            self._abandon(connection.endpoint)
            raise LostReplyError(
                f"metastore {connection.endpoint} did not answer: {_reason(error)}; "
                f"servers: {self._settings}",
                timed_out=_timed_out(error),
            ) from error
        except (TException, LanceNamespaceError):
            self._idle.append(connection)  # it answered, with an error
            raise
        except BaseException:
            connection.close()  # interrupted halfway, so the rest of an answer may follow
            raise
        self._idle.append(connection)
        return answer

    def _take_turn(self) -> None:
        if not self._turns.acquire(timeout=self._settings.read_timeout):
            raise ServiceUnavailableError(
                f"all {self._settings.pool_size} connections to {self._settings} stayed busy for "
                f"{self._settings.read_timeout:g} s; raise client.pool-size"
            )

    def _reuse(self) -> Connection | None:
        with contextlib.suppress(IndexError):
            while True:
                connection = self._idle.pop()
                if not connection.is_stale:
                    return connection
                connection.close()
        return None

    def _connect(self) -> Connection:
        deadline = time.monotonic() + self._settings.connect_timeout
        endpoints = self._by_preference()
        reasons: list[str] = []
        for left, endpoint in zip(range(len(endpoints), 0, -1), endpoints, strict=True):
            try:
                connection = self._open(endpoint, (deadline - time.monotonic()) / left)
            except TRANSPORT_ERRORS as error:
                reasons.append(f"{endpoint}: {_reason(error)}")
                continue
            self._preferred = endpoint
            return connection
        raise ServiceUnavailableError(
            f"cannot reach the metastore; tried {'; '.join(reasons)}. Check property 'uri' and that it runs"
        )

    def _open(self, endpoint: Endpoint, seconds: float) -> Connection:
        connection = Connection(endpoint, self._settings, seconds)
        try:
            self._admit(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _by_preference(self) -> list[Endpoint]:
        endpoints = self._settings.endpoints
        start = endpoints.index(self._preferred)
        return [*endpoints[start:], *endpoints[:start]]

    def _abandon(self, endpoint: Endpoint) -> None:
        # Its other connections are most likely dead too, and the next server's turn has come.
        endpoints = self._settings.endpoints
        self._preferred = endpoints[(endpoints.index(endpoint) + 1) % len(endpoints)]
        self.close()


_POOLS: weakref.WeakSet[Pool] = weakref.WeakSet()


def _forget_after_fork() -> None:
    # The sockets are the parent's too, and two speakers on one would mix answers; turns that were
    # taken by other threads of the parent would never be given back here.
    for pool in _POOLS:
        pool._forget()


os.register_at_fork(after_in_child=_forget_after_fork)


def _close_all(connections: deque[Connection]) -> None:
    with contextlib.suppress(IndexError):
        while True:
            connections.pop().close()


def _timed_out(error: BaseException) -> bool:
    return isinstance(error, TimeoutError) or getattr(error, "type", None) == TTransportException.TIMED_OUT


def _reason(error: BaseException) -> str:
    inner = getattr(error, "inner", None)  # thrift's own words are "unexpected exception"
    return str(inner or error).strip() or type(error).__name__
