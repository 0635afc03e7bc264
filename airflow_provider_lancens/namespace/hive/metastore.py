"""A Hive Metastore as a `Metastore`: its tables, one Thrift call a verb wherever one is enough."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lance_namespace.errors import (
    InternalError,
    InvalidInputError,
    LanceNamespaceError,
    NamespaceNotFoundError,
    ServiceUnavailableError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedOperationError,
)

from airflow_provider_lancens.identifiers import NamespaceId, TableId
from airflow_provider_lancens.namespace import marks, outcome
from airflow_provider_lancens.namespace.hive import entries, limits
from airflow_provider_lancens.namespace.hive.conditions import Conditions
from airflow_provider_lancens.namespace.hive.connection import Connection
from airflow_provider_lancens.namespace.hive.databases import Databases
from airflow_provider_lancens.namespace.hive.dialect import DEFAULT_CATALOG
from airflow_provider_lancens.namespace.hive.errors import OF_ALTER, OF_NAMESPACE, OF_TABLE
from airflow_provider_lancens.namespace.hive.settings import ClientSettings
from airflow_provider_lancens.namespace.metastore import Change, Expectation, ServerInfo, Table

BATCH = 500
"""Entries read by one call: HMS builds the whole answer in memory."""
_NO_LIMIT = -1
_TABLE_TYPE = f"hive_filter_field_params__{marks.TABLE_TYPE}"
# "like" takes Java's pattern and finds every spelling, on a database that knows such patterns. One that
# doesn't finds nothing, and is then asked for the usual spellings: together they take twice as long.
_ANY_SPELLING = f'{_TABLE_TYPE} like "(?i){marks.LANCE}"'
_USUAL_SPELLINGS = " or ".join(f'{_TABLE_TYPE} = "{spelling}"' for spelling in ("lance", "LANCE", "Lance"))


class HiveMetastore(Databases):
    """The verbs of a metastore over databases in one catalog, and their tables."""

    def __init__(self, settings: ClientSettings) -> None:
        """Take the settings; nothing is opened."""
        super().__init__(settings)
        self._conditions = Conditions()

    def server_info(self) -> ServerInfo:
        """The version of the server's API, and the catalog that this namespace works in."""

        def ask(connection: Connection) -> ServerInfo:
            return ServerInfo(
                "Hive Metastore",
                connection.api_version(),
                self._catalog_in_use(connection),
                self._conditions.known(connection.endpoint),
            )

        info: ServerInfo = self._calls.read(OF_NAMESPACE, "ask the server who it is", ask)
        return info

    def create_table(self, table: Table) -> None:
        """Create an external table's entry."""
        limits.check_table(table)

        def create(connection: Connection) -> None:
            connection.client.create_table_with_environment_context(
                entries.new_table(connection.dialect, table), entries.context(connection.dialect)
            )

        def happened() -> bool:
            found = self._find_table(table.id)
            return found is not None and outcome.says(found, table)

        try:
            self._calls.change(OF_TABLE, f"create table {table.id}", create, happened)
        except InvalidInputError:
            self.get_namespace(table.id.namespace)  # a missing database is an invalid object to HMS
            raise
        except InternalError as error:
            # 4.0.1 answers the losers of a race with a MetaException from its database.
            if self._find_table(table.id):
                raise TableAlreadyExistsError(f"cannot create table {table.id}: it exists") from error
            raise

    def get_table(self, table: TableId) -> Table:
        """Read an entry in one call."""
        return entries.table_view(table, self._raw_table(table))

    def get_tables(self, namespace: NamespaceId, names: Collection[str]) -> Sequence[Table]:
        """Read entries in batches; those that are gone are left out."""
        wanted = list(names)
        found: list[Table] = []
        for start in range(0, len(wanted), BATCH):
            found += self._get_batch(namespace, wanted[start : start + BATCH])
        return found

    def list_tables(self, namespace: NamespaceId) -> Sequence[str]:
        """All names of a database."""

        def read(connection: Connection) -> Any:
            return connection.client.get_all_tables(connection.dialect.database(namespace))

        names = self._calls.read(OF_NAMESPACE, f"list tables of {namespace}", read)
        return self._names_of_existing(namespace, names)

    def list_lance_tables(self, namespace: NamespaceId) -> Sequence[str]:
        """The names of the Lance tables by the server's filter, or where it has none, by reading all."""
        if not self._settings.filters_tables:
            return self._lance_among_all(namespace)
        try:
            names = self._filtered(namespace, _ANY_SPELLING) or self._filtered(namespace, _USUAL_SPELLINGS)
        except (InternalError, UnsupportedOperationError):
            return self._lance_among_all(namespace)
        return self._names_of_existing(namespace, names)

    def update_table(self, table: TableId, decide: Callable[[Table], Change | None]) -> Table:
        """Change parameters by one alter, whose expectation the server checks (HIVE-26882)."""
        raw = self._raw_table(table)
        entry = entries.table_view(table, raw)
        change = decide(entry)
        if change is None:
            return entry
        limits.check_parameters(table, change.set)
        raw.parameters = change.applied_to(entry.parameters)
        expect = change.expect or _unmoved(entry)

        def alter(connection: Connection) -> None:
            if expect:
                self._conditions.require(connection, table.namespace)
            connection.client.alter_table_with_environment_context(
                connection.dialect.database(table.namespace),
                table.name,
                raw,
                entries.context(connection.dialect, expect),
            )

        def happened() -> bool:
            return outcome.stands(self.get_table(table).parameters, change)

        self._calls.change(OF_ALTER, f"change table {table}", alter, happened)
        return replace(entry, parameters=raw.parameters)

    def require_compare_and_set(self, namespace: NamespaceId) -> None:
        """Refuse a server that ignores an alter's expectation."""

        def probe(connection: Connection) -> None:
            self._conditions.require(connection, namespace)

        try:
            self._calls.read(OF_TABLE, f"probe namespace {namespace}", probe)
        except InvalidInputError:
            self.get_namespace(namespace)  # a missing database is an invalid object to HMS
            raise

    def rename_table(self, table: TableId, to: TableId) -> None:
        """Give an entry another name; an external table's files stay where they are."""
        raw = self._raw_table(table)
        expect = _unmoved(entries.table_view(table, raw))
        self.get_namespace(to.namespace)
        if self._find_table(to):
            raise TableAlreadyExistsError(f"cannot rename {table} to {to}: an entry has that name")

        def rename(connection: Connection) -> None:
            for field, value in connection.dialect.table_fields(to).items():
                setattr(raw, field, value)
            connection.client.alter_table_with_environment_context(
                connection.dialect.database(table.namespace),
                table.name,
                raw,
                entries.context(connection.dialect, expect),
            )

        def happened() -> bool:
            return self._find_table(to) is not None and self._find_table(table) is None

        self._calls.change(OF_ALTER, f"rename table {table} to {to}", rename, happened)

    def drop_table(self, table: TableId) -> None:
        """Drop an entry with ``deleteData=false``."""

        def drop(connection: Connection) -> None:
            connection.client.drop_table(connection.dialect.database(table.namespace), table.name, False)

        self._calls.change(
            OF_TABLE, f"drop table {table}", drop, happened=lambda: self._find_table(table) is None
        )

    def drop_tables(
        self, namespace: NamespaceId, names: Collection[str]
    ) -> Mapping[str, LanceNamespaceError]:
        """Drop entries one by one; a server that is away ends it, and all the rest stays."""
        failed: dict[str, LanceNamespaceError] = {}
        away: ServiceUnavailableError | None = None
        for name in names:
            try:
                if away:
                    raise away
                self.drop_table(namespace.table(name))
            except TableNotFoundError:
                continue
            except ServiceUnavailableError as error:
                away = failed[name] = error
            except LanceNamespaceError as error:
                failed[name] = error
        return failed

    def _catalog_in_use(self, connection: Connection) -> str | None:
        if not connection.dialect.has_catalogs:
            return None
        return DEFAULT_CATALOG if self.namespace_levels == 1 else "any: an identifier begins with it"

    def _raw_table(self, table: TableId) -> Any:
        def read(connection: Connection) -> Any:
            return connection.client.get_table_req(connection.dialect.table_request(table)).table

        return self._calls.read(OF_TABLE, f"read table {table}", read)

    def _find_table(self, table: TableId) -> Table | None:
        try:
            return self.get_table(table)
        except (TableNotFoundError, NamespaceNotFoundError):
            return None

    def _get_batch(self, namespace: NamespaceId, names: Sequence[str]) -> Sequence[Table]:
        def read(connection: Connection) -> Any:
            request = connection.dialect.tables_request(namespace, names)
            return connection.client.get_table_objects_by_name_req(request).tables

        raws = self._calls.read(OF_TABLE, f"read tables of {namespace}", read)
        return [entries.table_view(namespace.table(raw.tableName), raw) for raw in raws]

    def _names_of_existing(self, namespace: NamespaceId, names: Sequence[str]) -> Sequence[str]:
        if not names:
            self.get_namespace(namespace)  # HMS answers a missing database like an empty one
        return names

    def _filtered(self, namespace: NamespaceId, expression: str) -> Sequence[str]:
        def read(connection: Connection) -> Any:
            database = connection.dialect.database(namespace)
            return connection.client.get_table_names_by_filter(database, expression, _NO_LIMIT)

        names: Sequence[str] = self._calls.read(OF_NAMESPACE, f"list Lance tables of {namespace}", read)
        return names

    def _lance_among_all(self, namespace: NamespaceId) -> Sequence[str]:
        found = self.get_tables(namespace, self.list_tables(namespace))
        return [entry.id.name for entry in found if marks.is_lance(entry)]


def _unmoved(entry: Table) -> Expectation | None:
    # An alter writes the whole entry: one that was read before a commit would take that commit back.
    if marks.is_managed(entry) and marks.VERSION in entry.parameters:
        return Expectation(marks.VERSION, entry.parameters[marks.VERSION])
    return None
