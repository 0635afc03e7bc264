"""`Metastore` over a Hive Metastore: databases, catalogs, tables; one call per operation if possible."""

from __future__ import annotations

import contextlib
import logging
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

from lance_namespace.errors import (
    InternalError,
    InvalidInputError,
    LanceNamespaceError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NamespaceNotFoundError,
    ServiceUnavailableError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedOperationError,
)

from airflow_provider_lancens.identifiers import NamespaceId, TableId, is_addressable
from airflow_provider_lancens.namespace import table_properties
from airflow_provider_lancens.namespace.batch_reads import BatchRead
from airflow_provider_lancens.namespace.hive import converters, limits
from airflow_provider_lancens.namespace.hive.api import HiveApi
from airflow_provider_lancens.namespace.hive.batch_reader import HiveBatchReader
from airflow_provider_lancens.namespace.hive.cas_probe import HiveCasProbe
from airflow_provider_lancens.namespace.hive.connection import Connection
from airflow_provider_lancens.namespace.hive.converters import DEFAULT_CATALOG, DEFAULT_DATABASE, catalog_of
from airflow_provider_lancens.namespace.hive.errors import ALTER_ERRORS, NAMESPACE_ERRORS, TABLE_ERRORS
from airflow_provider_lancens.namespace.hive.foreign_tables import ForeignTable, foreign_table
from airflow_provider_lancens.namespace.hive.pool import LostReplyError
from airflow_provider_lancens.namespace.hive.settings import ClientSettings
from airflow_provider_lancens.namespace.locations import DATABASE_SUFFIX, join, normalize
from airflow_provider_lancens.namespace.metastore_protocol import (
    CatalogTable,
    Expectation,
    Namespace,
    ParameterChange,
    ServerInfo,
    TableLocation,
    TableUpdate,
    change_applied,
    is_dropped,
    table_matches,
)

log = logging.getLogger(__name__)
_NO_LIMIT = -1
_FILTER_PAUSE_SECONDS = 600.0
"""How long a filter that failed isn't tried again: it may take as long as a call may take until it fails."""
_TABLE_TYPE = f"hive_filter_field_params__{table_properties.TABLE_TYPE}"
# "like" takes a Java pattern and finds every spelling, if the metastore's database supports such patterns.
# Otherwise it finds nothing, and the usual spellings are queried, too: both together take twice as long.
_ANY_SPELLING = f'{_TABLE_TYPE} like "(?i){table_properties.LANCE}"'
_USUAL_SPELLINGS = " or ".join(f'{_TABLE_TYPE} = "{spelling}"' for spelling in ("lance", "LANCE", "Lance"))


class HiveMetastore:
    """`Metastore` over the databases of one catalog, and their tables."""

    namespace_levels = 1
    check_name = staticmethod(limits.check_name)

    def __init__(self, settings: ClientSettings) -> None:
        """Take the settings; nothing is opened."""
        self._settings = settings
        self._api = HiveApi(settings, self._check_server)
        self._cas_probe = HiveCasProbe()
        self._filter_failed_until = 0.0
        self._batch_reader = HiveBatchReader(self._api, settings.read_timeout)

    @property
    def fingerprint(self) -> str:
        """Addresses of the servers."""
        return str(self._settings)

    def close(self) -> None:
        """Close idle connections."""
        self._api.close()

    def default_location(self, namespace: NamespaceId, root: str) -> str:
        """Return ``{root}/{database}.db``."""
        return join(root, f"{namespace.name}{DATABASE_SUFFIX}")

    def create_namespace(self, namespace: Namespace) -> None:
        """Create a database."""
        limits.check_namespace(namespace)

        def create(connection: Connection) -> None:
            connection.client.create_database(converters.new_database(connection.dialect, namespace))

        def took_effect() -> bool:
            stored = self._find_namespace(namespace.id)
            return stored is not None and stored.properties == namespace.properties

        with self._creation_errors(namespace.id):
            self._api.change(NAMESPACE_ERRORS, f"create namespace {namespace.id}", create, took_effect)

    def get_namespace(self, namespace: NamespaceId) -> Namespace:
        """Read a database."""
        return converters.to_namespace(namespace, self._raw_database(namespace))

    def deletable_folders(self, database: NamespaceId) -> Sequence[str]:
        """Return a database's location, and its location of managed tables on 4.x."""
        raw = self._raw_database(database)
        folders = (raw.locationUri, getattr(raw, "managedLocationUri", None))
        return [normalize(folder) for folder in folders if folder]

    def list_namespaces(self, parent: NamespaceId) -> Sequence[str]:
        """List all databases."""
        names: Sequence[str] = self._api.read(
            NAMESPACE_ERRORS, f"list namespaces of {str(parent)!r}", lambda c: c.client.get_all_databases()
        )
        return names

    def all_databases(self) -> Sequence[NamespaceId]:
        """List the databases of all catalogs; the id of an unaddressable one starts with its catalog."""
        unnamed = DEFAULT_CATALOG if self.namespace_levels == 1 else None

        def read(connection: Connection) -> list[NamespaceId]:
            client = connection.client
            if not connection.dialect.has_catalogs:
                return [NamespaceId.of([name]) for name in client.get_all_databases()]
            return [
                NamespaceId.of([name] if catalog == unnamed else [catalog, name])
                for catalog in client.get_catalogs().names
                for name in client.get_databases(f"@{catalog}#*")
            ]

        databases: list[NamespaceId] = self._api.read(
            NAMESPACE_ERRORS, "list the databases of all catalogs", read
        )
        return databases

    def drop_namespace(self, namespace: NamespaceId) -> None:
        """Drop an empty database with ``deleteData=false``; the server refuses it if it isn't empty."""

        def drop(connection: Connection) -> None:
            connection.client.drop_database(connection.dialect.database(namespace), False, False)

        def took_effect() -> bool:
            return self._find_namespace(namespace) is None

        try:
            self._api.change(NAMESPACE_ERRORS, f"drop namespace {namespace}", drop, took_effect)
        except InternalError:
            self.get_namespace(namespace)  # for a missing one 2.3.10 and 3.1.3 raise a NullPointerException
            raise

    def check_droppable(self, namespace: NamespaceId) -> None:
        """Refuse the database that HMS itself never drops: ``default`` of the catalog ``hive``."""
        if namespace.name == DEFAULT_DATABASE and catalog_of(namespace) == DEFAULT_CATALOG:
            raise InvalidInputError(
                f"namespace {namespace} cannot be dropped: every Hive Metastore has it; drop its "
                "tables instead"
            )

    def _raw_database(self, database: NamespaceId) -> Any:
        def read(connection: Connection) -> Any:
            return connection.client.get_database(connection.dialect.database(database))

        return self._api.read(NAMESPACE_ERRORS, f"read namespace {database}", read)

    def _check_server(self, connection: Connection) -> None:
        """Accept a new connection's server, or raise; all servers support databases."""

    @contextlib.contextmanager
    def _creation_errors(self, namespace: NamespaceId) -> Iterator[None]:
        # 4.0.1 raises a MetaException from its database for the losers of a race.
        try:
            yield
        except InternalError as error:
            if self._find_namespace(namespace):
                raise NamespaceAlreadyExistsError(f"cannot create {namespace}: it already exists") from error
            raise

    def _find_namespace(self, namespace: NamespaceId) -> Namespace | None:
        try:
            return self.get_namespace(namespace)
        except NamespaceNotFoundError:
            return None

    def server_info(self) -> ServerInfo:
        """Return the server's API version, and the catalog that this namespace uses."""

        def ask(connection: Connection) -> ServerInfo:
            return ServerInfo(
                "Hive Metastore",
                connection.api_version(),
                self._catalog_in_use(connection),
                self._cas_probe.known(connection.endpoint),
            )

        info: ServerInfo = self._api.read(NAMESPACE_ERRORS, "read the server's version", ask)
        return info

    def create_table(self, table: CatalogTable) -> None:
        """Create an external catalog table."""
        limits.check_table(table)

        def create(connection: Connection) -> None:
            connection.client.create_table_with_environment_context(
                converters.new_table(connection.dialect, table),
                converters.environment_context(connection.dialect),
            )

        def took_effect() -> bool:
            stored = self._find_table(table.id)
            return stored is not None and table_matches(stored, table)

        try:
            self._api.change(TABLE_ERRORS, f"create table {table.id}", create, took_effect)
        except InvalidInputError:
            self.get_namespace(table.id.namespace)  # a missing database is an invalid object to HMS
            raise
        except InternalError as error:
            # 4.0.1 raises a MetaException from its database for the losers of a race.
            if self._find_table(table.id):
                raise TableAlreadyExistsError(f"cannot create table {table.id}: it already exists") from error
            raise

    def get_table(self, table: TableId) -> CatalogTable:
        """Read a catalog table in one call."""
        return converters.to_table(table, self._raw_table(table))

    def get_tables(
        self, namespace: NamespaceId, names: Collection[str], *, columns: bool = True
    ) -> Iterator[BatchRead]:
        """Read catalog tables in batches; tables that don't exist are omitted."""
        return self._batch_reader.read(namespace, list(names), columns=columns)

    def hides_missing_tables(self, namespace: NamespaceId) -> bool:  # noqa: ARG002 - no server of Hive does
        """Return false: Hive says of a missing table that it doesn't exist."""
        return False

    def scan_tables(self, namespace: NamespaceId, *, lance_only: bool = False) -> Iterator[BatchRead]:
        """Read all tables and views of a database in batches, or only what the server's filter finds."""
        names = self.list_lance_tables(namespace) if lance_only else self.list_tables(namespace)
        return self.get_tables(namespace, names)

    def list_tables(self, namespace: NamespaceId) -> Sequence[str]:
        """List the tables and views of a database that an identifier can address."""
        return list(filter(is_addressable, self._all_names(namespace)))

    def list_lance_tables(self, namespace: NamespaceId) -> Sequence[str]:
        """List the Lance tables by the server's filter, or by reading all tables if it has none."""
        if not self._settings.filters_tables:
            return self._list_lance_by_reading(namespace)
        if time.monotonic() < self._filter_failed_until:
            return self._list_lance_by_reading(namespace)
        try:
            names = self._list_by_filter(namespace, _ANY_SPELLING)
            names = names or self._list_by_filter(namespace, _USUAL_SPELLINGS)
        except (InternalError, UnsupportedOperationError, LostReplyError) as error:
            if isinstance(error, LostReplyError) and not error.timed_out:
                raise
            self._filter_failed_until = time.monotonic() + _FILTER_PAUSE_SECONDS
            log.warning(
                "The server's filter of tables failed, so all tables are read instead; if it keeps failing, "
                "set client.table-filter=false: %s",
                error,
            )
            return self._list_lance_by_reading(namespace)
        return list(filter(is_addressable, self._names_or_not_found(namespace, names)))

    def foreign_tables(self, namespace: NamespaceId) -> Sequence[ForeignTable]:
        """Describe the tables and views of a database that aren't Lance tables, sorted by name."""
        raws = self._batch_reader.read_raw(namespace, self.list_tables(namespace))
        found = [
            foreign_table(raw) for raw in raws if not table_properties.has_lance_type(raw.parameters or {})
        ]
        return sorted(found, key=lambda table: table.name)

    def table_locations(self) -> Iterator[TableLocation]:
        """Iterate over the locations of all tables of the server, on 3.x and 4.x in all catalogs."""
        for database in self.all_databases():
            with contextlib.suppress(NamespaceNotFoundError):  # dropped meanwhile
                yield from self._locations_in(database)

    def update_table(
        self, table: TableId, decide: Callable[[CatalogTable], ParameterChange | None]
    ) -> TableUpdate:
        """Change parameters by one alter, whose expectation the server checks (HIVE-26882)."""
        raw = self._raw_table(table)
        catalog_table = converters.to_table(table, raw)
        change = decide(catalog_table)
        if change is None:
            return TableUpdate(catalog_table, changed=False)
        limits.check_parameters(table, change.set)
        emptied = None if change.columns is None else _without_columns(raw)
        raw.parameters = change.applied_to(catalog_table.parameters)
        if change.location is not None:
            raw.sd.location = change.location
        expect = change.expect or table_properties.unchanged(catalog_table)
        # An alter writes the whole catalog table: a table that was read before a commit would revert that
        # commit, or a declaration under the same name. A server that can't compare holds no managed tables.
        must_compare = change.expect or table_properties.is_managed(catalog_table)

        def alter(connection: Connection) -> None:
            if must_compare:
                self._cas_probe.require(connection, table.namespace)
            if emptied is not None:
                _alter(connection, table, emptied, expect)
            if change.columns is not None:
                raw.sd.cols = converters.described(connection.dialect, change.columns)
            _alter(connection, table, raw, expect)

        def took_effect() -> bool:
            return change_applied(self.get_table(table), change)

        self._api.change(ALTER_ERRORS, f"change table {table}", alter, took_effect)
        columns = catalog_table.columns if change.columns is None else change.columns
        location = change.location or catalog_table.location
        after = replace(catalog_table, location=location, parameters=raw.parameters, columns=columns)
        return TableUpdate(after, changed=True)

    def require_compare_and_set(self, namespace: NamespaceId) -> None:
        """Refuse a server that ignores an alter's expectation."""

        def probe(connection: Connection) -> None:
            self._cas_probe.require(connection, namespace)

        try:
            self._api.read(TABLE_ERRORS, f"probe namespace {namespace}", probe)
        except InvalidInputError:
            self.get_namespace(namespace)  # a missing database is an invalid object to HMS
            raise

    def rename_table(self, table: TableId, to: TableId) -> None:
        """Rename a catalog table; an external table's files stay where they are."""
        raw = self._raw_table(table)
        expect = table_properties.unchanged(converters.to_table(table, raw))
        self.get_namespace(to.namespace)
        if self._find_table(to):
            raise TableAlreadyExistsError(f"cannot rename {table} to {to}: a table of that name exists")

        def rename(connection: Connection) -> None:
            for field, value in connection.dialect.table_fields(to).items():
                setattr(raw, field, value)
            _alter(connection, table, raw, expect)

        def took_effect() -> bool:
            return self._find_table(to) is not None and self._find_table(table) is None

        self._api.change(ALTER_ERRORS, f"rename table {table} to {to}", rename, took_effect)

    def drop_table(self, table: CatalogTable) -> None:
        """Drop a catalog table with ``deleteData=false``."""

        def drop(connection: Connection) -> None:
            database = connection.dialect.database(table.id.namespace)
            connection.client.drop_table(database, table.id.name, False)

        def took_effect() -> bool:
            return is_dropped(table, self._find_table(table.id))

        self._api.change(TABLE_ERRORS, f"drop table {table.id}", drop, took_effect)

    def drop_tables(
        self,
        namespace: NamespaceId,  # noqa: ARG002 each table has it
        tables: Collection[CatalogTable],
    ) -> Mapping[str, LanceNamespaceError]:
        """Drop catalog tables one by one; stop, keeping the rest, if the server is unreachable."""
        failed: dict[str, LanceNamespaceError] = {}
        wanted = list(tables)
        for index, table in enumerate(wanted):
            try:
                self.drop_table(table)
            except TableNotFoundError:
                continue
            except ServiceUnavailableError as error:
                return failed | {left.id.name: error for left in wanted[index:]}
            except LanceNamespaceError as error:
                failed[table.id.name] = error
        return failed

    def _catalog_in_use(self, connection: Connection) -> str | None:
        if not connection.dialect.has_catalogs:
            return None
        return DEFAULT_CATALOG if self.namespace_levels == 1 else "any (the first level of an identifier)"

    def _raw_table(self, table: TableId) -> Any:
        def read(connection: Connection) -> Any:
            return connection.client.get_table_req(connection.dialect.table_request(table)).table

        return self._api.read(TABLE_ERRORS, f"read table {table}", read)

    def _find_table(self, table: TableId) -> CatalogTable | None:
        try:
            return self.get_table(table)
        except (TableNotFoundError, NamespaceNotFoundError):
            return None

    def _locations_in(self, database: NamespaceId) -> Iterator[TableLocation]:
        names = self._all_names(database)
        for raw in self._batch_reader.read_raw(database, names):
            if raw.sd and raw.sd.location:
                is_lance = table_properties.has_lance_type(raw.parameters or {})
                yield TableLocation(str(database), raw.tableName, raw.sd.location, is_lance)

    def _all_names(self, namespace: NamespaceId) -> Sequence[str]:
        def read(connection: Connection) -> Any:
            return connection.client.get_all_tables(connection.dialect.database(namespace))

        names = self._api.read(NAMESPACE_ERRORS, f"list tables of {namespace}", read)
        return self._names_or_not_found(namespace, names)

    def _names_or_not_found(self, namespace: NamespaceId, names: Sequence[str]) -> Sequence[str]:
        if not names:
            self.get_namespace(namespace)  # HMS treats a missing database like an empty one
        return names

    def _list_by_filter(self, namespace: NamespaceId, expression: str) -> Sequence[str]:
        def read(connection: Connection) -> Any:
            database = connection.dialect.database(namespace)
            return connection.client.get_table_names_by_filter(database, expression, _NO_LIMIT)

        names: Sequence[str] = self._api.read(NAMESPACE_ERRORS, f"list Lance tables of {namespace}", read)
        return names

    def _list_lance_by_reading(self, namespace: NamespaceId) -> Sequence[str]:
        names: list[str] = []
        for read in self.scan_tables(namespace):
            for name, error in read.failures.items():
                log.warning(
                    "Table %s is not listed, since it cannot be read: %s", namespace.table(name), error
                )
            names += [
                catalog_table.id.name
                for catalog_table in read.tables
                if table_properties.is_lance(catalog_table)
            ]
        return names


def _without_columns(raw: Any) -> Any | None:
    """Return a table as it was read, but for its columns; None if it describes none.

    They are removed first, since a server refuses another type in the place of one; and without any other
    change, since what `expect` compares must still be there for the alter that follows.
    """
    if not raw.sd.cols:
        return None
    emptied = deepcopy(raw)
    emptied.sd.cols = []
    return emptied


def _alter(connection: Connection, table: TableId, raw: Any, expect: Expectation | None) -> None:
    database = connection.dialect.database(table.namespace)
    context = converters.environment_context(connection.dialect, expect)
    connection.client.alter_table_with_environment_context(database, table.name, raw, context)


class CatalogMetastore(HiveMetastore):
    """`Metastore` whose outermost level is catalogs."""

    namespace_levels = 2

    def default_location(self, namespace: NamespaceId, root: str) -> str:
        """Return ``{root}/{catalog}[/{database}.db]``, but ``{root}/{database}.db`` in catalog ``hive``."""
        if len(namespace) == 1:
            return join(root, namespace.name)
        inside = root if namespace.parent.name == DEFAULT_CATALOG else join(root, namespace.parent.name)
        return super().default_location(namespace, inside)

    def create_namespace(self, namespace: Namespace) -> None:
        """Create a catalog or a database, in an existing catalog."""
        if len(namespace.id) == 1:
            self._create_catalog(namespace)
            return
        try:
            super().create_namespace(namespace)
        except (InvalidInputError, NamespaceNotFoundError):
            self._get_catalog(namespace.id.parent)
            raise

    def get_namespace(self, namespace: NamespaceId) -> Namespace:
        """Read a catalog or a database."""
        return self._get_catalog(namespace) if len(namespace) == 1 else super().get_namespace(namespace)

    def deletable_folders(self, database: NamespaceId) -> Sequence[str]:
        """Return a database's folders, and its catalog's unless that is ``hive``, which is never dropped."""
        folders = super().deletable_folders(database)
        if database.parent.name == DEFAULT_CATALOG:
            return folders
        catalog = self._get_catalog(database.parent).location
        return [*folders, *([normalize(catalog)] if catalog else [])]

    def list_namespaces(self, parent: NamespaceId) -> Sequence[str]:
        """List all catalogs, or all databases of a catalog."""
        if parent.is_root:
            names: Sequence[str] = self._api.read(
                NAMESPACE_ERRORS, "list catalogs", lambda c: c.client.get_catalogs().names
            )
            return names
        names_below: Sequence[str] = self._api.read(
            NAMESPACE_ERRORS,
            f"list databases of catalog {parent}",
            lambda c: c.client.get_databases(f"@{parent}#*"),
        )
        return self._names_or_not_found(parent, names_below)

    def check_droppable(self, namespace: NamespaceId) -> None:
        """Refuse the catalog ``hive`` and its database ``default``."""
        if namespace.parts == (DEFAULT_CATALOG,):
            raise InvalidInputError(
                f"catalog {namespace} cannot be dropped: every Hive Metastore has it; drop its "
                "databases instead"
            )
        if len(namespace) > 1:
            super().check_droppable(namespace)

    def drop_namespace(self, namespace: NamespaceId) -> None:
        """Drop an empty catalog or database without deleting files."""
        if len(namespace) == 1:
            self._drop_catalog(namespace)
        else:
            super().drop_namespace(namespace)

    def _check_server(self, connection: Connection) -> None:
        if not connection.dialect.has_catalogs:
            raise UnsupportedOperationError(
                f"metastore {connection.endpoint} has no catalogs, so it is Hive 2.x: use "
                "Hive2Namespace (connection type lance_hive2)"
            )

    def _create_catalog(self, catalog: Namespace) -> None:
        if catalog.properties or catalog.owner or catalog.owner_type:
            raise InvalidInputError(
                f"catalog {catalog.id}: a metastore stores only the description and the location of "
                f"a catalog; leave out {sorted(catalog.properties) or 'its owner'}"
            )
        limits.check_namespace(catalog)

        def create(connection: Connection) -> None:
            request = connection.dialect.types.CreateCatalogRequest(converters.new_catalog(catalog))
            connection.client.create_catalog(request)

        def took_effect() -> bool:
            stored = self._find_namespace(catalog.id)
            return stored is not None and stored.description == catalog.description

        with self._creation_errors(catalog.id):
            self._api.change(NAMESPACE_ERRORS, f"create catalog {catalog.id}", create, took_effect)

    def _get_catalog(self, catalog: NamespaceId) -> Namespace:
        raw = self._api.read(
            NAMESPACE_ERRORS,
            f"read catalog {catalog}",
            lambda c: c.client.get_catalog(c.dialect.types.GetCatalogRequest(catalog.name)).catalog,
        )
        return converters.catalog_to_namespace(catalog, raw)

    def _drop_catalog(self, catalog: NamespaceId) -> None:
        """Drop a catalog that is empty except for its own empty ``default`` database.

        HMS 3.1.3 and 4.0.1 delete the catalog's folder and its ``default`` database's with it. To keep
        all files, ``default`` is dropped first, by ``deleteData=false``, and the catalog
        is pointed at a folder that doesn't exist.
        """
        stored = self._get_catalog(catalog)
        if set(self.list_namespaces(catalog)) - {DEFAULT_DATABASE}:
            raise NamespaceNotEmptyError(
                f"cannot drop catalog {catalog}: it has databases other than default"
            )
        default = self._find_namespace(catalog.child(DEFAULT_DATABASE))
        if default:
            super().drop_namespace(default.id)
        with self._restored_if_not_empty(stored, default):
            self._move_catalog(
                replace(stored, location=join(stored.location or "", f"dropped-{uuid.uuid4().hex}"))
            )

            def drop(connection: Connection) -> Any:
                return connection.client.drop_catalog(
                    connection.dialect.types.DropCatalogRequest(catalog.name)
                )

            self._api.change(
                NAMESPACE_ERRORS,
                f"drop catalog {catalog}",
                drop,
                lambda: self._find_namespace(catalog) is None,
            )

    @contextlib.contextmanager
    def _restored_if_not_empty(self, catalog: Namespace, default: Namespace | None) -> Iterator[None]:
        # A database created meanwhile prevents the drop; then the catalog must be restored.
        try:
            yield
        except NamespaceNotEmptyError:
            self._move_catalog(catalog)
            if default:
                super().create_namespace(default)
            raise

    def _move_catalog(self, catalog: Namespace) -> None:
        def move(connection: Connection) -> None:
            types = connection.dialect.types
            changed = converters.new_catalog(catalog)
            connection.client.alter_catalog(types.AlterCatalogRequest(catalog.id.name, changed))

        def took_effect() -> bool:
            return self._get_catalog(catalog.id).location == catalog.location

        self._api.change(NAMESPACE_ERRORS, f"move catalog {catalog.id}", move, took_effect)
