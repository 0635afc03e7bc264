"""The properties of a Hive namespace that say how its servers are reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import urlsplit

from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.namespace.config import COMMON_KEYS, Properties
from airflow_provider_lancens.namespace.hive.sasl import KEYS as SASL_KEYS
from airflow_provider_lancens.namespace.hive.sasl import Authentication
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
    """One metastore server."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"thrift://{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """How the metastore's servers are reached."""

    endpoints: tuple[Endpoint, ...]
    """The servers of one metastore, in the order of preference."""
    pool_size: int = DEFAULT_POOL_SIZE
    """The most connections open at once."""
    connect_timeout: float = DEFAULT_CONNECT_TIMEOUT
    """Seconds for reaching any one of the servers, from its name to its first answer."""
    read_timeout: float = DEFAULT_READ_TIMEOUT
    """Seconds for one answer."""
    filters_tables: bool = True
    """Whether the server's own filter finds the Lance tables; False reads every entry instead."""
    tls: TlsSettings | None = None
    """None where connections are plain."""
    authentication: Authentication = field(default_factory=Authentication)

    @classmethod
    def parse(cls, properties: Properties) -> Self:
        """Read the client's properties.

        Raises:
            InvalidInputError: (13) a value can't be what it is; the message names the property.
        """
        return cls(
            endpoints=parse_uris(properties.text(URI)),
            pool_size=properties.integer(POOL_SIZE, DEFAULT_POOL_SIZE),
            connect_timeout=properties.seconds(CONNECT_TIMEOUT, DEFAULT_CONNECT_TIMEOUT),
            read_timeout=properties.seconds(READ_TIMEOUT, DEFAULT_READ_TIMEOUT),
            filters_tables=properties.flag(TABLE_FILTER, default=True),
            tls=TlsSettings.parse(properties),
            authentication=Authentication.parse(properties),
        )

    def __str__(self) -> str:
        return ",".join(map(str, self.endpoints))


def hive_properties(values: Mapping[str, str]) -> Properties:
    """The properties of a Hive namespace, with misspelled keys refused."""
    return Properties(values, KNOWN_KEYS)


def parse_uris(text: str | None) -> tuple[Endpoint, ...]:
    """The servers named by ``thrift://host:port[,thrift://host:port...]``; the port defaults to 9083.

    Raises:
        InvalidInputError: (13) none is named, or one can't be read.
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
        raise _bad_uri("the port is no number from 1 to 65535") from error
    if parts.scheme != "thrift":
        raise _bad_uri(f"the scheme is {parts.scheme!r}")
    if parts.username or parts.password:
        raise _bad_uri("it carries a user or password, which thrift has no place for")
    if not parts.hostname or parts.path.strip("/") or parts.query or port == 0:
        raise _bad_uri("host or port is missing, or something follows them")
    try:
        parts.hostname.encode("idna")
    except UnicodeError as error:
        raise _bad_uri("the host is no name that a network knows") from error
    return Endpoint(parts.hostname, port or DEFAULT_PORT)


def _bad_uri(reason: str) -> InvalidInputError:
    # The value itself may hold a password that somebody put there: only the reason is shown.
    return InvalidInputError(f"property {URI!r}: expected thrift://host:port, but {reason}")
