"""What every hook to a Lance namespace does; a kind of metastore adds how its connection is read."""

from __future__ import annotations

import importlib
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, cast

from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException, BaseHook, mask_secret

from airflow_provider_lancens.hooks.arguments import parse_table
from airflow_provider_lancens.hooks.errors import airflow_errors
from airflow_provider_lancens.hooks.extras import extra_properties, read_extra
from airflow_provider_lancens.hooks.form import connection_types
from airflow_provider_lancens.hooks.versions import TableVersion

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Connection

    from airflow_provider_lancens.namespace.base import MetastoreNamespace

_STORAGE_PREFIX = "storage."
_NAMES_IN_A_MESSAGE = 5


class LanceHook(BaseHook):
    """A Lance namespace by an Airflow connection; nothing is read or opened before it is needed.

    Args:
        lance_conn_id: the connection; the class's ``default_conn_name`` where None.
    """

    conn_name_attr = "lance_conn_id"
    default_conn_name: str
    conn_type: str
    hook_name: str
    namespace_impl: str
    """The namespace's dotted path, as `lance_namespace.connect` takes it, here and on a Spark executor."""
    reference_field: str
    """The extra that names another connection, from which this one takes its servers or credentials."""

    def __init__(self, lance_conn_id: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.lance_conn_id = lance_conn_id or self.default_conn_name
        self._namespace: MetastoreNamespace | None = None
        self._made_of: dict[str, str] = {}

    @classmethod
    def for_connection(cls, conn_id: str) -> LanceHook:
        """The hook that a connection's type asks for; never from an event loop.

        Raises:
            AirflowFailException: the connection's type isn't one of this provider's.
        """
        return _hook_of(read_connection(conn_id))

    @classmethod
    async def afor_connection(cls, conn_id: str) -> LanceHook:
        """The same from an event loop, where a trigger has to ask for its connection asynchronously."""
        hook = _hook_of(await cls.aget_connection(conn_id))
        await hook.aprepare()
        return hook

    @classmethod
    def of(cls, connection: Connection) -> Self:
        """The hook to a connection that is at hand already."""
        hook = cls(lance_conn_id=connection.conn_id)
        hook.connection = connection
        return hook

    @cached_property
    def connection(self) -> Connection:
        """The Airflow connection, read once."""
        return read_connection(self.lance_conn_id)

    async def aprepare(self) -> None:
        """Read, from an event loop, what else of Airflow's connections this one needs."""
        raise NotImplementedError

    @property
    def reference(self) -> str | None:
        """The id of the connection that this one's extra refers to; None where it names none."""
        return read_extra(self.connection).get(self.reference_field) or None

    def namespace_properties(self) -> dict[str, str]:
        """The namespace's properties, all strings, with the secrets that the connection holds.

        Raises:
            AirflowFailException: a field of the connection can't be what it is; the message names it.
        """
        own = extra_properties(self.connection, self.conn_type)
        own.pop(self.reference_field, None)
        return {**self.endpoint_properties(), **self.credential_properties(), **own}

    def endpoint_properties(self) -> dict[str, str]:
        """The properties that say which server it is, without any secret."""
        raise NotImplementedError

    def credential_properties(self) -> dict[str, str]:
        """The properties that hold the connection's user and password, where it has them."""
        raise NotImplementedError

    def s3_properties(self) -> dict[str, str]:
        """``region`` and ``endpoint`` of the S3 that holds the tables, as far as the connection says them."""
        extra = read_extra(self.connection)
        found = {
            name: extra.get(f"{_STORAGE_PREFIX}{name}") or extra.get(f"{_STORAGE_PREFIX}aws_{name}")
            for name in ("region", "endpoint")
        }
        return {name: str(value) for name, value in found.items() if value}

    def get_conn(self) -> MetastoreNamespace:
        """The namespace, a `lance_namespace.LanceNamespace`; its first call opens what it needs.

        It is made once, and again where its properties have changed: temporary credentials run out.

        Raises:
            AirflowFailException: the connection describes no namespace.
        """
        properties = self.namespace_properties()
        if self._namespace is None or properties != self._made_of:
            self.close()
            self._namespace, self._made_of = self._make(properties), properties
        return self._namespace

    def close(self) -> None:
        """Give up idle connections to the metastore; the next call opens new ones."""
        if self._namespace is not None:
            self._namespace.close()

    def test_connection(self) -> tuple[bool, str]:
        """Ask the metastore who it is and for a few namespaces, as Airflow's Test button does; it only reads.

        Returns:
            Whether it answered, and what was reached or why not.
        """
        try:
            with airflow_errors(f"asking {self.description}"):
                server, names = self.get_conn().server_info(), self._some_namespaces()
        except AirflowException as error:
            return False, str(error)
        return True, f"Reached {self.description}: {server.words}. Namespaces: {names}."

    @property
    def description(self) -> str:
        """What kind of metastore this is and where, without any secret."""
        where = ", ".join(f"{key}={value}" for key, value in self.endpoint_properties().items())
        return f"{self.hook_name} at {where}"

    def table_version(self, table: str) -> TableVersion | None:
        """The newest version of a table, by one look: the metastore's where it decides, else the storage's.

        Args:
            table: its identifier, ``database$table``.

        Returns:
            None where the table isn't there yet, or no version of it.

        Raises:
            LanceRetryableError: nobody answered; the next look may.
            AirflowFailException: the answer won't change: no such name is possible, access denied, …
        """
        from lance_namespace import DescribeTableRequest
        from lance_namespace.errors import NamespaceNotFoundError, TableNotFoundError

        identifier = parse_table(table)
        with airflow_errors(f"looking at table {str(identifier)!r} through {self.lance_conn_id!r}"):
            try:
                described = self.get_conn().describe_table(DescribeTableRequest(id=list(identifier.parts)))
            except (NamespaceNotFoundError, TableNotFoundError):
                return None
            location = str(described.location)
            if described.managed_versioning:
                version = described.version
            else:
                version = self._stored_version(location, described.storage_options or {})
        return TableVersion(str(identifier), version, location) if version else None

    def _make(self, properties: dict[str, str]) -> MetastoreNamespace:
        import lance_namespace

        try:
            made = lance_namespace.connect(self.namespace_impl, properties)
        except ValueError as error:
            raise AirflowFailException(f"connection {self.lance_conn_id!r}: {error}") from error
        return cast("MetastoreNamespace", made)

    def _stored_version(self, location: str, vended: dict[str, str]) -> int | None:
        from airflow_provider_lancens.namespace.storage import latest_version

        own = {
            key.removeprefix(_STORAGE_PREFIX): value
            for key, value in self.namespace_properties().items()
            if key.startswith(_STORAGE_PREFIX)
        }
        return latest_version(location, {**own, **vended})

    def _some_namespaces(self) -> str:
        from lance_namespace import ListNamespacesRequest

        request = ListNamespacesRequest(id=[], limit=_NAMES_IN_A_MESSAGE)
        response = self.get_conn().list_namespaces(request)
        names = sorted(response.namespaces)
        return ", ".join([*names, "…"] if response.page_token else names) or "none"


def read_connection(conn_id: str) -> Connection:
    """An Airflow connection, with the secrets of its extra masked in logs; never from an event loop."""
    connection = BaseHook.get_connection(conn_id)
    mask_secret(dict(read_extra(connection)))
    return connection


def _hook_of(connection: Connection) -> LanceHook:
    types = connection_types()
    if connection.conn_type not in types:
        raise AirflowFailException(
            f"connection {connection.conn_id!r}, field Connection Type: it is {connection.conn_type!r}; "
            f"allowed: {', '.join(types)}"
        )
    module, _, name = types[connection.conn_type]["hook-class-name"].rpartition(".")
    hook_class: type[LanceHook] = getattr(importlib.import_module(module), name)
    return hook_class.of(connection)
