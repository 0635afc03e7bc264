"""The byte stream to one server: a socket made within a deadline, and TLS around it."""

from __future__ import annotations

import queue
import socket
import ssl
import threading
import time
from typing import Any

from thrift.transport.TSocket import TSocket

from airflow_provider_lancens.namespace.hive.settings import Endpoint
from airflow_provider_lancens.namespace.hive.tls import TLS, TlsSettings

_KEEPALIVE_IDLE = 60
"""Seconds after which an idle connection is asked for, so that no firewall forgets it silently."""

Address = tuple[int, Any]


class Deadline:
    """A moment by which several steps must be done together."""

    def __init__(self, seconds: float) -> None:
        """Count from now."""
        self._end = time.monotonic() + seconds

    def left(self, shares: int = 1) -> float:
        """The seconds left, divided by `shares`.

        Raises:
            TimeoutError: none are.
        """
        seconds = self._end - time.monotonic()
        if seconds <= 0:
            raise TimeoutError("timed out")
        return seconds / shares


def open_socket(endpoint: Endpoint, tls: TlsSettings | None, deadline: Deadline) -> TSocket:
    """Connect to a server, with TLS where it is wanted.

    Raises:
        OSError: it can't be reached in time, or its certificate isn't trusted.
        InvalidInputError: (13) a file of `tls` can't be read.
    """
    context = tls.context() if tls else None
    connected = _connect(endpoint, deadline)
    if context:
        connected = _secure(connected, context, endpoint.host, deadline.left())
    wrapped = TSocket(endpoint.host, endpoint.port)
    wrapped.setHandle(connected)
    return wrapped


def _secure(plain: socket.socket, context: ssl.SSLContext, host: str, seconds: float) -> ssl.SSLSocket:
    try:
        plain.settimeout(seconds)
        return context.wrap_socket(plain, server_hostname=host)
    except BaseException as error:
        plain.close()
        if isinstance(error, (ssl.SSLError, ConnectionError)) and not isinstance(
            error, ssl.SSLCertVerificationError
        ):
            raise ConnectionError(f"{error} ({TLS}=true, and this may be no TLS server)") from error
        raise


def _connect(endpoint: Endpoint, deadline: Deadline) -> socket.socket:
    addresses = _addresses(endpoint, deadline.left())
    for index, (family, address) in enumerate(addresses):
        last = index == len(addresses) - 1
        try:
            return _connect_to(family, address, deadline.left(len(addresses) - index))
        except OSError:
            if last:
                raise
    raise OSError(f"{endpoint.host} has no address")


def _connect_to(family: int, address: Any, seconds: float) -> socket.socket:
    connected = socket.socket(family, socket.SOCK_STREAM)
    try:
        connected.settimeout(seconds)
        connected.connect(address)
        # A request is one write; the system shall not hold its last part back.
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if hasattr(socket, "TCP_KEEPIDLE"):
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEPALIVE_IDLE)
    except BaseException:
        connected.close()
        raise
    return connected


def _addresses(endpoint: Endpoint, seconds: float) -> list[Address]:
    # The system's resolver takes no timeout, and asks a dead name server for longer than we may wait.
    answers: queue.SimpleQueue[list[Address] | OSError] = queue.SimpleQueue()

    def resolve() -> None:
        try:
            found = socket.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM)
            answers.put([(family, address) for family, _, _, _, address in found])
        except OSError as error:
            answers.put(error)

    threading.Thread(target=resolve, daemon=True).start()
    try:
        answer = answers.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError(f"the name {endpoint.host} was not resolved within {seconds:.1f} s") from None
    if isinstance(answer, OSError):
        raise answer
    return answer
