"""Base class of hooks to Lance namespaces; subclasses read the connections of their type."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, cast
from urllib.parse import urlsplit

from airflow.sdk import BaseHook
from airflow.sdk.log import mask_secret

from airflow_provider_lancens.hooks.airflow_errors import (
    AirflowException,
    AirflowFailException,
    AirflowNotFoundException,
    airflow_error,
    airflow_errors,
)
from airflow_provider_lancens.hooks.connection_fields import (
    ASSET_AUTHORITY,
    asset_authority,
    connection_types,
    extra_properties,
    in_form_names,
    read_extra,
)
from airflow_provider_lancens.hooks.template_args import parse_table
from airflow_provider_lancens.provider_info import DEFAULT_CONNECTION

if TYPE_CHECKING:
    from airflow.sdk import Connection

    from airflow_provider_lancens.identifiers import TableId
    from airflow_provider_lancens.namespace.hive.foreign_tables import ForeignTable
    from airflow_provider_lancens.namespace.metastore_namespace import MetastoreNamespace
    from airflow_provider_lancens.namespace.table_status import TableStatus
    from airflow_provider_lancens.spark.execution import Execution
    from airflow_provider_lancens.spark.lance_catalog import LanceCatalog, TableRef
    from airflow_provider_lancens.spark.lance_table import Table

_POLLING = "polling table {!r} through connection {!r}"
_NAMES_IN_A_MESSAGE = 5
_HOOKS = {
    "lance_hive2": ("hive", "LanceHive2Hook"),
    "lance_hive3": ("hive", "LanceHive3Hook"),
    "lance_glue": ("glue", "LanceGlueHook"),
    "lance": ("catalog_hook", "LanceCatalogHook"),
}
"""Module and hook of each connection type; the provider's metadata names the hooks for SQL operators."""


class LanceHook(BaseHook):
    """A Lance namespace from an Airflow connection, which is read and opened when first needed.

    ``LanceHook("lake")`` is the hook of the connection's type, for which the connection is read at once.

    Args:
        lance_conn_id: the connection.
    """

    conn_name_attr = "lance_conn_id"
    default_conn_name = DEFAULT_CONNECTION
    conn_type: str
    hook_name: str
    namespace_impl: str
    """The namespace's dotted path for `lance_namespace.connect`, here and on a Spark executor."""
    reference_field: str
    """The extra field that names another connection, which provides servers or credentials."""

    def __new__(cls, lance_conn_id: str = DEFAULT_CONNECTION, **kwargs: Any) -> Self:  # noqa: ARG004 as __init__
        """Create a hook; of this class itself, the hook of the connection's type.

        Raises:
            AirflowFailException: the class is this one, and the connection's type isn't this provider's.
        """
        kind = _hook_class(read_connection(lance_conn_id)) if cls is LanceHook else cls
        return cast("Self", object.__new__(kind))

    def __init__(self, lance_conn_id: str = DEFAULT_CONNECTION, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.lance_conn_id = lance_conn_id
        self._namespace: MetastoreNamespace | None = None

    @classmethod
    def for_connection(cls, conn_id: str) -> LanceHook:
        """Return the hook for a connection's type; not to be called from an event loop.

        Raises:
            AirflowFailException: the connection's type isn't one of this provider's.
        """
        return _hook_for(read_connection(conn_id))

    @classmethod
    async def afor_connection(cls, conn_id: str) -> LanceHook:
        """Return the same from an event loop, where a trigger has to read its connection asynchronously."""
        hook = _hook_for(await cls.aget_connection(conn_id))
        await hook.aprepare()
        return hook

    @classmethod
    def of(cls, connection: Connection) -> Self:
        """Return the hook for a connection that has already been read."""
        hook = cls(lance_conn_id=connection.conn_id)
        hook.connection = connection
        return hook

    @cached_property
    def connection(self) -> Connection:
        """The Airflow connection, read once.

        Raises:
            AirflowNotFoundException: there is no such connection.
        """
        return read_connection(self.lance_conn_id)

    # These three aren't declared abstract, or type checkers would refuse LanceHook("lake").

    async def aprepare(self) -> None:
        """Read, from an event loop, the other Airflow connections that this one needs."""
        raise NotImplementedError

    @property
    def reference(self) -> str | None:
        """The id of the connection that this one's extra refers to, or None."""
        return read_extra(self.connection).get(self.reference_field) or None

    @property
    def asset_authority(self) -> str:
        """The first part of the URIs of the tables' assets; by default the connection's id.

        Raises:
            AirflowFailException: the connection's field Asset authority is invalid.
        """
        return asset_authority(self.connection)

    def namespace_properties(self) -> dict[str, str]:
        """Return the namespace's properties, all strings, including the connection's secrets.

        Raises:
            AirflowFailException: a field of the connection is invalid; the message names it.
        """
        from airflow_provider_lancens.namespace.property_keys import REQUIRE_ROOT, ROOT

        own = extra_properties(self.connection, self.conn_type)
        own.pop(self.reference_field, None)
        if own.pop(ASSET_AUTHORITY, None) is not None:
            _ = self.asset_authority  # raises for an invalid authority before anything is written
        if ROOT not in own:  # the default root is the current folder, which differs between workers
            own[REQUIRE_ROOT] = "true"
        return {**self.endpoint_properties(), **self.credential_properties(), **own}

    def endpoint_properties(self) -> dict[str, str]:
        """Return the properties that identify the server, without secrets."""
        raise NotImplementedError

    def credential_properties(self) -> dict[str, str]:
        """Return the properties with the connection's user and password, if it has them."""
        raise NotImplementedError

    def s3_properties(self) -> dict[str, str]:
        """Return ``region`` and ``endpoint`` of the tables' S3 storage, if the connection specifies them."""
        from airflow_provider_lancens.namespace.property_keys import STORAGE_PREFIX

        extra = read_extra(self.connection)
        fields = {
            name: extra.get(f"{STORAGE_PREFIX}{name}") or extra.get(f"{STORAGE_PREFIX}aws_{name}")
            for name in ("region", "endpoint")
        }
        return {name: str(value) for name, value in fields.items() if value}

    def hive_tables_conf(self, given: Mapping[str, str]) -> dict[str, str]:  # noqa: ARG002 a subclass's
        """Return Spark's configuration to read the Hive tables of the connection's metastore.

        Args:
            given: the configuration that Spark has besides, which takes precedence.

        Raises:
            AirflowFailException: the connection isn't to a Hive Metastore, or Spark's client needs a setting
                that can't be derived from it; the message names the setting.
        """
        raise AirflowFailException(
            f"connection {self.lance_conn_id!r}, hive_tables: the connection has type {self.conn_type}; only "
            "those to a Hive Metastore, lance_hive2 and lance_hive3, give Spark their Hive tables"
        )

    def list_foreign_tables(self, database: str) -> Sequence[ForeignTable]:
        """Return the tables and views of a database of Hive that aren't Lance tables, sorted by name.

        Args:
            database: its identifier, ``database``; of a ``lance_hive3`` connection ``catalog.database``.

        Returns:
            Of each its ``name``, its ``format``, the columns that it is ``partitioned_by``, and the
            ``obstacle`` why Spark can't read it with ``hive_tables=True``, or None.

        Raises:
            AirflowFailException: there is no such database, or the connection isn't to a Hive Metastore.
            LanceRetryableError: the metastore is unavailable.
        """
        raise AirflowFailException(
            f"connection {self.lance_conn_id!r}, listing the tables of {database!r} that aren't Lance's: the "
            f"connection has type {self.conn_type}; expected lance_hive2, lance_hive3"
        )

    def storage_options(self) -> dict[str, str]:
        """Return Lance's storage options among the namespace's properties, including secrets.

        Raises:
            AirflowFailException: a field of the connection is invalid; the message names it.
        """
        from airflow_provider_lancens.namespace.property_keys import storage_options

        return storage_options(self.namespace_properties())

    def get_conn(self) -> MetastoreNamespace:
        """Return the namespace, a `lance_namespace.LanceNamespace`, which connects on its first call.

        It is created once.

        Raises:
            AirflowFailException: the connection doesn't describe a namespace.
        """
        if self._namespace is None:
            self._namespace = self._new_namespace(self.namespace_properties())
        return self._namespace

    def catalog(self, *, spark: Any = None, execution: Execution | None = None) -> LanceCatalog:
        """Return the catalog of the connection, whose tables are read and maintained without Spark.

        Its methods raise Airflow's errors. Nothing is requested.

        Args:
            spark: the session for methods that need Spark, or a function that opens it; by default the active
                one.
            execution: identifies and reports writes; by default only the given key identifies them.
        """
        from airflow_provider_lancens.spark.execution import NO_TASK
        from airflow_provider_lancens.spark.lance_catalog import LanceCatalog

        def attempt(doing: str) -> AbstractContextManager[None]:
            return airflow_errors(f"{doing} through connection {self.lance_conn_id!r}")

        return LanceCatalog(self.get_conn, spark=spark, attempt=attempt, execution=execution or NO_TASK)

    def table(self, ref: TableRef) -> Table:
        """Return a table of the connection: see `LanceCatalog.table`.

        Args:
            ref: its identifier, ``database.table``: the newest version. Or the XCom of a sensor or of a
                write: exactly its version, only to be read.

        Raises:
            AirflowFailException: the identifier is invalid, or the XCom has no table or no version.
        """
        return self.catalog().table(ref)

    def get_reader(self) -> MetastoreNamespace:
        """Return the same namespace for reading only: none of its operations writes, see `for_reading`."""
        return self.get_conn().for_reading()

    def close(self) -> None:
        """Close idle connections to the metastore; the next call opens new ones."""
        if self._namespace is not None:
            self._namespace.close()

    def test_connection(self) -> tuple[bool, str]:
        """Read the metastore's identity and a few namespaces, for Airflow's Test button.

        Returns:
            Whether the connection works, and a description of the metastore or of the error.
        """
        try:
            with airflow_errors(f"connecting to {self.description}"):
                server, names = self.get_conn().server_info(), self._some_namespaces()
        except AirflowException as error:
            return False, in_form_names(self.conn_type, str(error))
        return True, f"Connected to {self.description}: {server.summary}. Namespaces: {names}."

    @property
    def description(self) -> str:
        """Describe the kind and the address of the metastore, without secrets."""
        from airflow_provider_lancens.redaction import redact

        where = ", ".join(f"{key}={redact(value)}" for key, value in self.endpoint_properties().items())
        return f"{self.hook_name} at {where}"

    def table_status(self, table: TableId | str) -> TableStatus:
        """Poll a table: its newest version, from its version authority, and its location.

        Args:
            table: its identifier, parsed or as text, ``database$table``.

        Returns:
            Its status; the version is 0 if it has none, the location None if it doesn't exist.

        Raises:
            LanceRetryableError: the metastore or the storage is unavailable; the next poll may succeed.
            AirflowFailException: a permanent error, such as an invalid name or denied access.
        """
        table_id = parse_table(table) if isinstance(table, str) else table
        with airflow_errors(_POLLING.format(str(table_id), self.lance_conn_id)):
            namespace = self.get_conn()
            status = namespace.poll_tables([table_id])[table_id]
            if isinstance(status, Exception):
                raise status
            return namespace.read_storage_version(status) if status.needs_listing else status

    def poll_tables(
        self, tables: Collection[TableId], known: Mapping[TableId, object] | None = None
    ) -> dict[TableId, TableStatus | AirflowException]:
        """Poll many catalog tables, with one call per database; a failing table doesn't affect the others.

        Args:
            tables: the tables.
            known: the result of an earlier poll, whose statuses are returned where they haven't changed.

        Returns:
            For each its status, or the error that `table_status` would raise. A status with
            ``needs_listing`` is incomplete: `read_storage_version` completes it.
        """
        from lance_namespace.errors import LanceNamespaceError

        polled = self.get_conn().poll_tables(tables, known or {})
        # Errors without traceback and cause take little memory: waits keep them during an outage.
        return {
            table: airflow_error(_POLLING.format(str(table), self.lance_conn_id), status)
            if isinstance(status, LanceNamespaceError)
            else status
            for table, status in polled.items()
        }

    def read_storage_version(self, status: TableStatus) -> TableStatus:
        """Complete a status by listing the versions at the table's location; raises as `table_status`."""
        from lance_namespace.errors import LanceNamespaceError

        try:
            return self.get_conn().read_storage_version(status)
        except LanceNamespaceError as error:
            raise airflow_error(_POLLING.format(str(status.table), self.lance_conn_id), error) from None

    def _new_namespace(self, properties: dict[str, str]) -> MetastoreNamespace:
        import lance_namespace

        from airflow_provider_lancens.hooks import metrics
        from airflow_provider_lancens.redaction import redact, shareable_cause

        try:
            namespace = lance_namespace.connect(self.namespace_impl, properties)
        except ValueError as error:
            # The cause is the namespace's own error; lance_namespace wraps it in a longer message.
            message = in_form_names(self.conn_type, redact(str(error.__cause__ or error)))
            raise AirflowFailException(f"connection {self.lance_conn_id!r}: {message}") from shareable_cause(
                error
            )
        if metrics.is_on():
            from airflow_provider_lancens.spark.observed import observe

            observe(namespace, metrics.observer(self.lance_conn_id))
        return cast("MetastoreNamespace", namespace)

    def _some_namespaces(self) -> str:
        from lance_namespace import ListNamespacesRequest

        request = ListNamespacesRequest(id=[], limit=_NAMES_IN_A_MESSAGE)
        response = self.get_conn().list_namespaces(request)
        names = sorted(response.namespaces)
        return ", ".join([*names, "…"] if response.page_token else names) or "none"


def get_connection(conn_id: str) -> Connection:
    """Return an Airflow connection with its extra unread; not from an event loop.

    Raises:
        AirflowNotFoundException: there is no such connection.
    """
    try:
        return BaseHook.get_connection(conn_id)
    except ImportError as error:
        if "SUPERVISOR_COMMS" not in str(error):  # a secrets backend's own import failed
            raise
        # Airflow 3.1.0 raises this for a missing connection outside of a task.
        raise AirflowNotFoundException(f"The conn_id `{conn_id}` isn't defined") from error


def read_connection(conn_id: str) -> Connection:
    """Read an Airflow connection and mask the secrets of its extra in logs; not from an event loop.

    Raises:
        AirflowNotFoundException: there is no such connection.
        AirflowFailException: its extra isn't a JSON object.
    """
    connection = get_connection(conn_id)
    extra = read_extra(connection)
    mask_secret(dict(extra))
    for key, value in extra.items():
        for secret in _secrets_in(key, value):
            mask_secret(secret)
    return connection


def _secrets_in(key: str, value: Any) -> Iterator[str]:
    """Yield the secrets that Airflow's masker misses: in storage options, and passwords in URLs."""
    from airflow_provider_lancens.redaction import is_secret

    if isinstance(value, str) and value:
        if is_secret(key):
            yield value
        with contextlib.suppress(ValueError):  # text that is no URL has no password
            yield from filter(None, [urlsplit(value).password])


def _hook_for(connection: Connection) -> LanceHook:
    return _hook_class(connection).of(connection)


def _hook_class(connection: Connection) -> type[LanceHook]:
    types = connection_types()
    if connection.conn_type not in types:
        raise AirflowFailException(
            f"connection {connection.conn_id!r}, field Connection Type: is "
            f"{connection.conn_type!r}; expected {', '.join(types)}"
        )
    module, name = _HOOKS[connection.conn_type]
    hook_class: type[LanceHook] = getattr(importlib.import_module(f"{__package__}.{module}"), name)
    return hook_class
