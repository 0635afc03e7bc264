"""Client settings of a Hive namespace, parsed from its properties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import urlsplit

from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.namespace.config import COMMON_KEYS, Properties
from airflow_provider_lancens.namespace.hive.authentication import KEYS as SASL_KEYS
from airflow_provider_lancens.namespace.hive.authentication import Authentication
from airflow_provider_lancens.namespace.hive.tls import KEYS as TLS_KEYS
from airflow_provider_lancens.namespace.hive.tls import TlsSettings

URI = "uri"
POOL_SIZE = "client.pool-size"
CONNECT_TIMEOUT = "client.connect-timeout"
READ_TIMEOUT = "client.read-timeout"
TABLE_FILTER = "client.table-filter"
KNOWN_KEYS = (
    COMMON_KEYS | TLS_KEYS | SASL_KEYS | {URI, POOL_SIZE, CONNECT_TIMEOUT, READ_TIMEOUT, TABLE_FILTER}
)

DEFAULT_PORT = 9083
DEFAULT_POOL_SIZE = 3
DEFAULT_CONNECT_TIMEOUT = 8.0
DEFAULT_READ_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Address of one metastore server."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"thrift://{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Client settings for the metastore's servers."""

    endpoints: tuple[Endpoint, ...]
    """Servers of one metastore, in order of preference."""
    pool_size: int = DEFAULT_POOL_SIZE
    """Maximum number of open connections."""
    connect_timeout: float = DEFAULT_CONNECT_TIMEOUT
    """Seconds for connecting to any one of the servers, from name resolution to its first reply."""
    read_timeout: float = DEFAULT_READ_TIMEOUT
    """Seconds for one reply."""
    filters_tables: bool = True
    """Whether to list Lance tables by the server's filter; False reads every table instead."""
    tls: TlsSettings | None = None
    """TLS settings; None for plain connections."""
    authentication: Authentication = field(default_factory=Authentication)

    @classmethod
    def parse(cls, properties: Properties) -> Self:
        """Read the client's properties.

        Raises:
            InvalidInputError: (13) a value is invalid; the message names the property.
        """
        tls = TlsSettings.parse(properties)
        return cls(
            endpoints=parse_uris(properties.text(URI)),
            pool_size=properties.integer(POOL_SIZE, DEFAULT_POOL_SIZE),
            connect_timeout=properties.seconds(CONNECT_TIMEOUT, DEFAULT_CONNECT_TIMEOUT),
            read_timeout=properties.seconds(READ_TIMEOUT, DEFAULT_READ_TIMEOUT),
            filters_tables=properties.flag(TABLE_FILTER, default=True),
            tls=tls,
            authentication=Authentication.parse(properties, has_tls=tls is not None),
        )

    def __str__(self) -> str:
        return ",".join(map(str, self.endpoints))


def hive_properties(values: Mapping[str, str]) -> Properties:
    """Return the properties of a Hive namespace, refusing misspelled keys."""
    return Properties(values, KNOWN_KEYS)


def parse_uris(text: str | None) -> tuple[Endpoint, ...]:
    """Parse ``thrift://host:port[,thrift://host:port...]``; the port defaults to 9083.

    Raises:
        InvalidInputError: (13) there is none, or one is invalid.
    """
    endpoints = tuple(_endpoint(uri.strip()) for uri in (text or "").split(",") if uri.strip())
    if not endpoints:
        raise InvalidInputError(
            f"property {URI!r} is missing: expected thrift://host:port[,thrift://host:port...]"
        )
    return endpoints


def _endpoint(uri: str) -> Endpoint:
    try:
        parts = urlsplit(uri if "://" in uri else f"thrift://{uri}")
        port = parts.port
    except ValueError as error:
        raise _bad_uri("the port is not a number from 1 to 65535") from error
    if parts.scheme in ("http", "https"):
        raise _bad_uri("Thrift over HTTP is not supported; use the server's binary Thrift port")
    if parts.scheme != "thrift":
        raise _bad_uri(f"the scheme is {parts.scheme!r}")
    if parts.username or parts.password:
        raise _bad_uri("it contains a user or password, which Thrift does not use")
    if not parts.hostname or parts.path.strip("/") or parts.query or port == 0:
        raise _bad_uri("host or port is missing, or there is a path or a query")
    try:
        parts.hostname.encode("idna")
    except UnicodeError as error:
        raise _bad_uri("the host is not a valid host name") from error
    return Endpoint(parts.hostname, port or DEFAULT_PORT)


def _bad_uri(reason: str) -> InvalidInputError:
    # The value itself may contain a misplaced password: only the reason is shown.
    return InvalidInputError(f"property {URI!r}: expected thrift://host:port, but {reason}")
