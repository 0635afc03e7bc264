"""Byte stream to one metastore server, with a deadline, and Thrift's protocol with checked replies."""

from __future__ import annotations

import socket
import ssl
from typing import Any

from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TMessageType
from thrift.transport.TTransport import TTransportBase, TTransportException

from airflow_provider_lancens.namespace.deadline import Deadline, within
from airflow_provider_lancens.namespace.hive.limits import MAX_REPLY, MAX_TEXT
from airflow_provider_lancens.namespace.hive.settings import Endpoint
from airflow_provider_lancens.namespace.hive.tls import TLS, TlsSettings

_MAX_ITEMS = 10_000_000
"""Items of one list or map: memory for all of them is allocated before the first is read."""
_REPLIES = (TMessageType.REPLY, TMessageType.EXCEPTION)


class ReplyMismatchError(ConnectionError):
    """Reply that doesn't belong to the call that was sent: the connection must not be used again."""


class MessageProtocol(TBinaryProtocolAccelerated):  # type: ignore[misc]
    """Protocol that numbers calls, unlike the generated clients, and checks each reply's number and name."""

    def __init__(self, transport: Any) -> None:
        """Take an open transport."""
        super().__init__(
            transport, strictRead=True, string_length_limit=MAX_TEXT, container_length_limit=_MAX_ITEMS
        )
        self.is_sent = False
        """Whether the current call was encoded completely: later errors come from its reply."""
        self._name = ""
        self._number = 0

    def writeMessageBegin(self, name: str, kind: int, number: int) -> None:  # noqa: N802, ARG002 - thrift's
        """Begin a call, with a sequence number of our own."""
        self._name = name
        self._number = (self._number + 1) % 2**31
        super().writeMessageBegin(name, kind, self._number)

    def writeMessageEnd(self) -> None:  # noqa: N802 - thrift's
        """End a call, which is then sent."""
        super().writeMessageEnd()
        self.is_sent = True

    def readMessageBegin(self) -> tuple[str, int, int]:  # noqa: N802 - thrift's
        """Begin a reply.

        Raises:
            ReplyMismatchError: it isn't a reply, or another call's.
        """
        try:
            name, kind, number = super().readMessageBegin()
        except (TProtocolException, UnicodeDecodeError) as error:
            raise ReplyMismatchError(f"its reply is not a Thrift message: {error}") from error
        if kind not in _REPLIES or (name, number) != (self._name, self._number):
            raise ReplyMismatchError(
                f"it replied to call {number} of {name!r}, expected a reply to call {self._number} "
                f"of {self._name!r}"
            )
        return name, kind, number


_KEEPALIVE_IDLE = 60
"""Seconds until TCP keepalive probes an idle connection, so that no firewall drops it silently."""

_MAX_READ = 2**20
"""Bytes of one read: memory for them is allocated before they arrive."""

Address = tuple[int, Any]


class DeadlineTransport(TTransportBase):  # type: ignore[misc]
    """Thrift transport over a connected socket; each read and write gets the remaining time of the deadline.

    A socket's own timeout restarts with each byte that arrives, so a server that sends one byte a second
    would never exceed it.
    """

    def __init__(self, connected: socket.socket, deadline: Deadline) -> None:
        """Take a connected socket, plain or with TLS, and the deadline of the first operations."""
        self.deadline = deadline
        self.left = MAX_REPLY
        """Bytes that may still be read."""
        self._socket = connected

    def isOpen(self) -> bool:  # noqa: N802 - thrift's name
        """Whether it is open."""
        return self._socket.fileno() >= 0

    def read(self, size: int) -> bytes:
        """Read at least one byte.

        Raises:
            TProtocolException: the reply is too long.
            TimeoutError: the deadline passed.
            TTransportException, OSError: the connection ended or broke.
        """
        self._socket.settimeout(self.deadline.left())
        try:
            data = self._socket.recv(min(size, _MAX_READ))
        except TimeoutError:
            raise self.deadline.error() from None
        if not data:
            raise TTransportException(TTransportException.END_OF_FILE, "the server closed the connection")
        self.left -= len(data)
        if self.left < 0:
            raise TProtocolException(
                TProtocolException.SIZE_LIMIT, f"it is longer than {MAX_REPLY} bytes, the maximum"
            )
        return data

    def write(self, data: bytes) -> None:
        """Write all of it; raises as `read`."""
        rest = memoryview(data)
        while rest:
            self._socket.settimeout(self.deadline.left())
            try:
                rest = rest[self._socket.send(rest) :]
            except TimeoutError:
                raise self.deadline.error() from None

    def flush(self) -> None:
        """Do nothing: writes are sent immediately."""

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    @property
    def has_ended(self) -> bool:
        """Whether something can be read between two calls: the connection's end, or unsolicited data."""
        self._socket.settimeout(0)
        try:
            self._socket.recv(1)
        except (BlockingIOError, ssl.SSLWantReadError):  # nothing to read, or only records of TLS itself
            return False
        except OSError:
            return True
        return True


def open_socket(endpoint: Endpoint, tls: TlsSettings | None, deadline: Deadline) -> socket.socket:
    """Connect to a server, with TLS if configured.

    Raises:
        OSError: it can't be reached in time, or its certificate isn't trusted.
        InvalidInputError: (13) a file of `tls` can't be read.
    """
    context = tls.context() if tls else None
    connected = _connect(endpoint, deadline)
    return _secure(connected, context, endpoint.host, deadline) if context else connected


def _secure(plain: socket.socket, context: ssl.SSLContext, host: str, deadline: Deadline) -> ssl.SSLSocket:
    try:
        # The ssl module applies the timeout to the whole handshake.
        plain.settimeout(deadline.left())
        return context.wrap_socket(plain, server_hostname=host)
    except BaseException as error:  # whatever interrupts it: the socket must not leak
        plain.close()
        if isinstance(error, TimeoutError):
            raise deadline.error("the TLS handshake ") from None
        if isinstance(error, (ssl.SSLError, ConnectionError)) and not isinstance(
            error, ssl.SSLCertVerificationError
        ):
            raise ConnectionError(f"{error} ({TLS}=true, but the server may not use TLS)") from error
        raise


def _connect(endpoint: Endpoint, deadline: Deadline) -> socket.socket:
    addresses = _addresses(endpoint, deadline)
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
        # Requests are single writes, whose last packet must not be delayed.
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if hasattr(socket, "TCP_KEEPIDLE"):
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEPALIVE_IDLE)
    except BaseException:  # on any interruption, the socket must not leak
        connected.close()
        raise
    return connected


def _addresses(endpoint: Endpoint, deadline: Deadline) -> list[Address]:
    # The system's resolver takes no timeout, and may wait for a dead name server beyond the deadline.
    def resolve() -> list[Address]:
        addresses = socket.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM)
        return [(family, address) for family, _, _, _, address in addresses]

    return within(deadline, f"resolving the name {endpoint.host}", resolve)
