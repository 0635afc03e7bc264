"""Open connection to one metastore server, used by one thread at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TApplicationException, TException
from thrift.transport.TTransport import TBufferedTransport, TTransportException

from airflow_provider_lancens.namespace.deadline import Deadline
from airflow_provider_lancens.namespace.hive.authentication import AUTH, NONE
from airflow_provider_lancens.namespace.hive.converters import Hive2Dialect, Hive3Dialect
from airflow_provider_lancens.namespace.hive.limits import MAX_REPLY
from airflow_provider_lancens.namespace.hive.reduced_reads import reduced_service
from airflow_provider_lancens.namespace.hive.settings import ClientSettings, Endpoint
from airflow_provider_lancens.namespace.hive.tls import TLS
from airflow_provider_lancens.namespace.hive.transport import DeadlineTransport, MessageProtocol, open_socket

_BUFFER = 64 * 1024
"""Bytes per read from the socket: a long list of names takes only a few reads."""


class UnreadableReplyError(TException):  # type: ignore[misc]
    """Reply whose content can't be decoded: retrying the same call would fail again."""


class Connection:
    """Authenticated socket to one server, with the server's dialect."""

    def __init__(self, endpoint: Endpoint, settings: ClientSettings, deadline: Deadline) -> None:
        """Connect, authenticate, and detect the server's dialect.

        Args:
            endpoint: the server.
            settings: client settings.
            deadline: deadline of all these steps; a server that accepts but doesn't respond is unreachable.

        Raises:
            TTransportException, OSError: the server can't be reached.
            UnauthenticatedError: (16) the authentication failed.
            ServiceUnavailableError: (17) the authentication failed temporarily.
            UnsupportedOperationError: (0) a property isn't supported here.
            InvalidInputError: (13) a property is invalid.
        """
        self.endpoint = endpoint
        self.deadline = deadline
        """Deadline of a whole call, with all its steps."""
        self._read_timeout = settings.read_timeout
        self._socket = DeadlineTransport(open_socket(endpoint, settings.tls, deadline), deadline)
        try:
            plain = TBufferedTransport(self._socket, _BUFFER)
            protected = settings.authentication.authenticate(plain, endpoint.host, deadline)
            self._buffers = (plain, protected)
            self._protocol = MessageProtocol(protected)
            self.dialect = self._find_dialect(settings)
        except BaseException:  # on any interruption, such as the task's timeout, the socket must not leak
            self.close()
            raise

    @cached_property
    def client(self) -> Any:
        """Thrift client of the dialect, whose calls are bounded by the deadline and the read timeout.

        Raises:
            UnreadableReplyError: a call's reply can't be decoded; the connection must not be used again.
            TException, OSError: as Thrift declares them.
        """
        return self._client(self.dialect.service)

    @cached_property
    def reduced_client(self) -> Any:
        """Client that decodes only the fields of tables that polls need; otherwise like `client`."""
        return self._client(reduced_service(self.dialect.service))

    @property
    def is_stale(self) -> bool:
        """Whether it can't be used: the server has closed it, or sent data that belongs to no call."""
        return self._socket.has_ended or any(buffer.cstringio_buf.read(1) for buffer in self._buffers)

    def api_version(self) -> str:
        """Return the API version that the server reports."""
        # The newer bindings lack the calls that HMS inherits from Thrift's own service.
        return str(self._client(Hive2Dialect.service).getVersion())

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _client(self, service: Any) -> Any:
        return _Client(service.Client(self._protocol), self._call)

    def _call(self, method: Callable[..., Any], *arguments: Any) -> Any:
        self._socket.deadline = self.deadline.at_most(self._read_timeout)
        self._socket.left = MAX_REPLY
        self._protocol.is_sent = False
        try:
            return method(*arguments)
        except (TTransportException, OSError, EOFError):
            raise
        except Exception as error:
            # Any type: for bytes that aren't a reply, the decoder may raise anything.
            declared = isinstance(error, TException) and not isinstance(error, TProtocolException)
            if declared or not self._protocol.is_sent:
                raise
            raise UnreadableReplyError(
                f"cannot read the reply of metastore {self.endpoint} to {method.__name__}: "
                f"{type(error).__name__}: {error}"
            ) from error

    def _find_dialect(self, settings: ClientSettings) -> Hive2Dialect:
        # Detected by a call for catalogs, since 2.3.10 and 3.1.3 both report the version "3.0".
        try:
            self._client(Hive3Dialect.service).get_catalogs()
        except TApplicationException as error:
            if error.type != TApplicationException.UNKNOWN_METHOD:
                raise
            return Hive2Dialect()
        except TimeoutError:
            raise
        except (TTransportException, UnreadableReplyError, OSError) as error:
            raise ConnectionError(f"{error}{_hint(settings)}") from error
        return Hive3Dialect()


class _Client:
    """Wrapper of a generated client, whose calls go through one function."""

    def __init__(self, generated: Any, call: Callable[..., Any]) -> None:
        self._generated = generated
        self._call = call

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return partial(self._call, getattr(self._generated, name))


def _hint(settings: ClientSettings) -> str:
    # A server with TLS or SASL responds to plain Thrift by closing, or by bytes that aren't a reply.
    missing = [
        *([f"{TLS}=true if it uses TLS"] if settings.tls is None else []),
        *([f"{AUTH} if it uses SASL"] if settings.authentication.kind == NONE else []),
    ]
    return f" (set {' or '.join(missing)})" if missing else ""
