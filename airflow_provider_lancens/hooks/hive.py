"""Hooks to Hive Metastore."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from airflow.providers.common.compat.sdk import AirflowFailException, conf

from airflow_provider_lancens.hooks.base import LanceHook, read_connection
from airflow_provider_lancens.hooks.extras import read_extra
from airflow_provider_lancens.hooks.form import of_connection_type

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Connection

_DEFAULT_PORT = 9083
_SCHEME = "thrift"


class LanceHiveHook(LanceHook):
    """What the hooks to Hive Metastore share; the servers may be those of a ``hive_metastore`` connection.

    Args:
        lance_conn_id: a connection of one of the Hive types.
    """

    reference_field = "hive_metastore_conn_id"

    async def aprepare(self) -> None:
        """Read the ``hive_metastore`` connection, where this one refers to one."""
        if self.reference:
            self.server_connection = await self.aget_connection(self.reference)

    @cached_property
    def server_connection(self) -> Connection:
        """The connection that names the servers: this one, or that which its extra refers to.

        Raises:
            AirflowFailException: both name servers.
        """
        if self.reference is None:
            return self.connection
        if self.connection.host:
            raise AirflowFailException(
                f"connection {self.lance_conn_id!r}: field Host and extra {self.reference_field!r} both name "
                "servers; give one of them"
            )
        return read_connection(self.reference)

    def endpoint_properties(self) -> dict[str, str]:
        """The ``uri`` property, from the connection's host and port."""
        return {"uri": metastore_uris(self.server_connection)}

    def credential_properties(self) -> dict[str, str]:
        """``client.user`` and ``client.password``, or Kerberos as a ``hive_metastore`` connection says it."""
        found = {"client.user": self.connection.login, "client.password": self.connection.password}
        kerberos = kerberos_properties(self.server_connection) if self.reference else {}
        return {**kerberos, **{key: value for key, value in found.items() if value}}


@of_connection_type("lance_hive2")
class LanceHive2Hook(LanceHiveHook):
    """Lance tables in a Hive Metastore 2.x: two levels, ``database$table``.

    Args:
        lance_conn_id: a connection of type ``lance_hive2``.
    """

    namespace_impl = "airflow_provider_lancens.namespace.Hive2Namespace"


@of_connection_type("lance_hive3")
class LanceHive3Hook(LanceHiveHook):
    """Lance tables in a Hive Metastore 3.x or 4.x: three levels, ``catalog$database$table``.

    Args:
        lance_conn_id: a connection of type ``lance_hive3``.
    """

    namespace_impl = "airflow_provider_lancens.namespace.Hive3Namespace"


def kerberos_properties(connection: Connection) -> dict[str, str]:
    """What a ``hive_metastore`` connection, or Airflow's ``core.security``, says of Kerberos.

    Args:
        connection: its extra may hold ``auth_mechanism`` and ``kerberos_service_name``, as the
            apache-hive provider reads them.
    """
    extra = read_extra(connection)
    default = "GSSAPI" if conf.get("core", "security", fallback="") == "kerberos" else "NOSASL"
    if extra.get("auth_mechanism", default) != "GSSAPI":
        return {}
    service = extra.get("kerberos_service_name")
    return {"client.auth": "kerberos", **({"client.kerberos.service-name": service} if service else {})}


def metastore_uris(connection: Connection) -> str:
    """The servers that a connection's host names, as ``thrift://host:port``, joined by commas.

    Args:
        connection: its host holds one or more of ``host``, ``host:port``, ``thrift://host:port``; its
            port counts for those without one, 9083 where it is empty too.

    Raises:
        AirflowFailException: the host is empty, or one of its entries is something else.
    """
    entries = [entry.strip() for entry in (connection.host or "").split(",") if entry.strip()]
    if not entries:
        raise _refusal(connection, "is empty")
    return ",".join(_metastore_uri(entry, connection) for entry in entries)


def _metastore_uri(entry: str, connection: Connection) -> str:
    parts = urlsplit(entry if "://" in entry else f"{_SCHEME}://{entry}")
    if "@" in entry:
        raise _refusal(connection, "holds a user or a password, which don't belong there")
    try:
        port = parts.port or connection.port or _DEFAULT_PORT
    except ValueError:
        raise _refusal(connection, f"has no valid port in {entry!r}") from None
    if parts.scheme != _SCHEME or not parts.hostname or parts.path.strip("/") or parts.query:
        raise _refusal(connection, f"holds {entry!r}")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{_SCHEME}://{host}:{port}"


def _refusal(connection: Connection, reason: str) -> AirflowFailException:
    return AirflowFailException(
        f"connection {connection.conn_id!r}, field Host: {reason}; "
        f"allowed: host, host:port or {_SCHEME}://host:port, several separated by commas"
    )
