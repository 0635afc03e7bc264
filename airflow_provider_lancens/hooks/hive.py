"""Hooks to Hive Metastore."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow.configuration import conf

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException, airflow_errors
from airflow_provider_lancens.hooks.connection_fields import (
    connection_types,
    field_name,
    hook_of_connection_type,
    read_extra,
)
from airflow_provider_lancens.hooks.lance_hook import LanceHook, read_connection
from airflow_provider_lancens.hooks.template_args import parse_namespace

if TYPE_CHECKING:
    from airflow.sdk import Connection

    from airflow_provider_lancens.namespace.hive.foreign_tables import ForeignTable

_DEFAULT_PORT = 9083
_SCHEME = "thrift"
_URI = "uri"


class LanceHiveHook(LanceHook):
    """Base class of hooks to Hive Metastore; a ``hive_metastore`` connection can provide the servers.

    Args:
        lance_conn_id: a connection of one of the Hive types.
    """

    reference_field = "hive_metastore_conn_id"

    async def aprepare(self) -> None:
        """Read the ``hive_metastore`` connection, if this one refers to one."""
        if self.reference:
            self.server_connection = await self.aget_connection(self.reference)

    @cached_property
    def server_connection(self) -> Connection:
        """The connection that names the servers: this connection, or the connection that its extra refers to.

        Raises:
            AirflowFailException: both name servers.
        """
        if self.reference is None:
            return self.connection
        if self.connection.host:
            own, other = (field_name(self.conn_type, key) for key in (_URI, self.reference_field))
            raise AirflowFailException(
                f"connection {self.lance_conn_id!r}: {own} and {other} both specify servers; "
                "set only one of them"
            )
        return read_connection(self.reference)

    def endpoint_properties(self) -> dict[str, str]:
        """Return the ``uri`` property, from the connection's host and port."""
        return {_URI: metastore_uris(self.server_connection)}

    def hive_tables_conf(self, given: Mapping[str, str]) -> dict[str, str]:
        """See `LanceHook.hive_tables_conf`."""
        from airflow_provider_lancens.hooks.hive_tables_conf import spark_conf_of_hive_tables

        return spark_conf_of_hive_tables(self.lance_conn_id, self.namespace_properties(), given)

    def list_foreign_tables(self, database: str) -> Sequence[ForeignTable]:
        """See `LanceHook.list_foreign_tables`."""
        identifier = parse_namespace(database)
        namespace: Any = self.get_conn()
        with airflow_errors(f"listing the tables of {database!r} through connection {self.lance_conn_id!r}"):
            found: Sequence[ForeignTable] = namespace.foreign_tables(identifier.parts)
        return found

    def credential_properties(self) -> dict[str, str]:
        """Return ``client.user`` and ``client.password``, or a ``hive_metastore`` connection's Kerberos."""
        credentials = {"client.user": self.connection.login, "client.password": self.connection.password}
        kerberos = kerberos_properties(self.server_connection) if self.reference else {}
        return {**kerberos, **{key: value for key, value in credentials.items() if value}}


@hook_of_connection_type("lance_hive2")
class LanceHive2Hook(LanceHiveHook):
    """Lance tables in a Hive Metastore 2.x: two levels, ``database$table``.

    Args:
        lance_conn_id: a connection of type ``lance_hive2``.
    """

    namespace_impl = "airflow_provider_lancens.namespace.Hive2Namespace"


@hook_of_connection_type("lance_hive3")
class LanceHive3Hook(LanceHiveHook):
    """Lance tables in a Hive Metastore 3.x or 4.x: three levels, ``catalog$database$table``.

    Args:
        lance_conn_id: a connection of type ``lance_hive3``.
    """

    namespace_impl = "airflow_provider_lancens.namespace.Hive3Namespace"


def kerberos_properties(connection: Connection) -> dict[str, str]:
    """Return the Kerberos properties of a ``hive_metastore`` connection, or of Airflow's ``core.security``.

    Args:
        connection: its extra may contain ``auth_mechanism`` and ``kerberos_service_name``, as for the
            apache-hive provider.
    """
    extra = read_extra(connection)
    default = "GSSAPI" if conf.get("core", "security", fallback="") == "kerberos" else "NOSASL"
    if extra.get("auth_mechanism", default) != "GSSAPI":
        return {}
    service = extra.get("kerberos_service_name")
    return {"client.auth": "kerberos", **({"client.kerberos.service-name": service} if service else {})}


def metastore_uris(connection: Connection) -> str:
    """Return the servers in a connection's host as ``thrift://host:port``, separated by commas.

    Args:
        connection: its host contains one or more of ``host``, ``host:port``, ``thrift://host:port``; its port
            applies to servers without a port, and is 9083 by default.

    Raises:
        AirflowFailException: the host is empty or invalid.
    """
    entries = [entry.strip() for entry in (connection.host or "").split(",") if entry.strip()]
    if not entries:
        raise _refusal(connection, "is empty")
    return ",".join(_metastore_uri(entry, connection) for entry in entries)


def _metastore_uri(entry: str, connection: Connection) -> str:
    parts = urlsplit(entry if "://" in entry else f"{_SCHEME}://{entry}")
    if "@" in entry:
        raise _refusal(connection, "contains a user or a password, which are not allowed there")
    try:
        port = parts.port or connection.port or _DEFAULT_PORT
    except ValueError:
        raise _refusal(connection, f"contains {entry!r}, whose port is invalid") from None
    if parts.scheme in ("http", "https"):
        raise _refusal(connection, f"contains {entry!r}, but Thrift over HTTP is not supported")
    if parts.scheme != _SCHEME or not parts.hostname or parts.path.strip("/") or parts.query:
        raise _refusal(connection, f"contains {entry!r}")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{_SCHEME}://{host}:{port}"


def _refusal(connection: Connection, reason: str) -> AirflowFailException:
    # The form of a hive_metastore connection has Airflow's own names.
    kind = connection.conn_type or ""
    name = field_name(kind, _URI) if kind in connection_types() else "field Host"
    return AirflowFailException(
        f"connection {connection.conn_id!r}, {name}: {reason}; "
        f"expected host, host:port or {_SCHEME}://host:port, several separated by commas"
    )
