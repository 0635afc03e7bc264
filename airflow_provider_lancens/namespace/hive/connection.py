"""One open connection to one metastore server; it belongs to one thread at a time."""

from __future__ import annotations

import ssl
from functools import cached_property
from typing import Any

from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TApplicationException
from thrift.transport.TTransport import TBufferedTransport, TTransportException

from airflow_provider_lancens.namespace.hive.dialect import Hive2Dialect, Hive3Dialect
from airflow_provider_lancens.namespace.hive.sasl import AUTH, NONE
from airflow_provider_lancens.namespace.hive.settings import ClientSettings, Endpoint
from airflow_provider_lancens.namespace.hive.tls import TLS
from airflow_provider_lancens.namespace.hive.transport import Deadline, open_socket

_BUFFER = 64 * 1024
"""Bytes asked of the socket at once: a long list of names comes in a few reads."""


class Connection:
    """A socket to one server, and what is known of that server."""

    def __init__(self, endpoint: Endpoint, settings: ClientSettings, seconds: float) -> None:
        """Connect, authenticate, and find out how the server is spoken to.

        Args:
            endpoint: the server.
            settings: how it is reached.
            seconds: how long all this may take; a server that accepts and then is silent isn't there.

        Raises:
            TTransportException, OSError: the server can't be reached.
            LanceNamespaceError: it refused us (16), or a property can't be honored (0, 13).
        """
        deadline = Deadline(seconds)
        self.endpoint = endpoint
        self._read_timeout = settings.read_timeout
        self._socket = open_socket(endpoint, settings.tls, deadline)
        try:
            self._socket.setTimeout(1000 * deadline.left())
            buffered = TBufferedTransport(self._socket, _BUFFER)
            transport = settings.authentication.authenticate(buffered, endpoint.host)
            self._protocol = TBinaryProtocolAccelerated(transport)
            self._socket.setTimeout(1000 * deadline.left())
            self.dialect = self._find_dialect(settings)
        except BaseException:
            self.close()
            raise
        self._socket.setTimeout(1000 * self._read_timeout)

    @cached_property
    def client(self) -> Any:
        """The generated client of the dialect."""
        return self.dialect.service.Client(self._protocol)

    @property
    def is_stale(self) -> bool:
        """Whether the server has closed this idle connection: then there is something to read, its end."""
        handle = self._socket.handle
        handle.settimeout(0)
        try:
            handle.recv(1)
        except (BlockingIOError, ssl.SSLWantReadError):  # nothing, or TLS's own housekeeping
            handle.settimeout(self._read_timeout)
            return False
        except OSError:
            return True
        return True

    def api_version(self) -> str:
        """What the server calls the version of its API."""
        # By the older bindings: the newer ones lack what HMS inherits from Thrift's own service.
        return str(Hive2Dialect.service.Client(self._protocol).getVersion())

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _find_dialect(self, settings: ClientSettings) -> Hive2Dialect:
        # By asking for its catalogs: 2.3.10 and 3.1.3 both say that their version is "3.0".
        try:
            Hive3Dialect.service.Client(self._protocol).get_catalogs()
        except TApplicationException as error:
            if error.type != TApplicationException.UNKNOWN_METHOD:
                raise
            return Hive2Dialect()
        except (TTransportException, TProtocolException) as error:
            if error.type == TTransportException.TIMED_OUT:
                raise
            raise ConnectionError(f"{error}{_hint(settings)}") from error
        return Hive3Dialect()


def _hint(settings: ClientSettings) -> str:
    # A server that speaks TLS or SASL answers plain Thrift by closing, or by bytes that look like a
    # very long answer.
    missing = [
        *([f"{TLS}=true if it speaks TLS"] if settings.tls is None else []),
        *([f"{AUTH} if it authenticates by SASL"] if settings.authentication.kind == NONE else []),
    ]
    return f" (set {' or '.join(missing)})" if missing else ""
