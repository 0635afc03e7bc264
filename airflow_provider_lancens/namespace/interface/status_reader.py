"""Extension to the specification: reads the status of many tables by few calls, for polls of triggerers."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from lance_namespace.errors import (
    InvalidInputError,
    LanceNamespaceError,
    NamespaceNotFoundError,
    PermissionDeniedError,
)

from airflow_provider_lancens.identifiers import NamespaceId, TableId
from airflow_provider_lancens.namespace import table_properties
from airflow_provider_lancens.namespace.batch_reads import OF_THE_SERVER
from airflow_provider_lancens.namespace.error_types import UnreadableTablesError
from airflow_provider_lancens.namespace.metastore_protocol import CatalogTable, Metastore
from airflow_provider_lancens.namespace.operations.table_operations import TableOperations
from airflow_provider_lancens.namespace.requests import table_id
from airflow_provider_lancens.namespace.storage import object_store
from airflow_provider_lancens.namespace.table_status import TableStatus

StatusOrError = TableStatus | LanceNamespaceError
_FAILED_IN_A_ROW = 3
"""Databases without a readable table after which the server is considered failing; fewer may be refused."""
NOTHING_KNOWN: Mapping[TableId, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class StatusReader:
    """Reads the statuses of catalog tables, one batch per namespace, and the version of a table's storage."""

    metastore: Metastore
    tables: TableOperations

    def poll(
        self, tables: Collection[TableId], known: Mapping[TableId, object] = NOTHING_KNOWN
    ) -> dict[TableId, StatusOrError]:
        """Poll many catalog tables; a failing one doesn't affect the others.

        Args:
            tables: their identifiers, in any namespaces.
            known: the result of an earlier poll; a status that hasn't changed is returned as the same object,
                so that repeated polls leave hardly any work for the garbage collector.

        Returns:
            For each its status, or an error: the table's own, or the same for all tables that were not polled
            any more: ServiceUnavailableError (17), ThrottlingError (21) or UnauthenticatedError (16).
        """
        statuses: dict[TableId, StatusOrError] = {}
        by_namespace: dict[NamespaceId, dict[str, TableId]] = {}
        for table in tables:
            try:
                valid = table_id(table.parts, self.metastore)
                by_namespace.setdefault(valid.namespace, {})[valid.name] = table
            except InvalidInputError as error:
                statuses[table] = error
        server_error: LanceNamespaceError | None = None
        failed = 0
        for namespace, named in sorted(by_namespace.items(), key=lambda item: _turn(known, item[1])):
            if server_error is not None:
                statuses |= dict.fromkeys(named.values(), server_error)
                continue
            try:
                statuses |= self._poll_namespace(namespace, named, known)
                failed = 0
            except OF_THE_SERVER as error:
                statuses |= dict.fromkeys(named.values(), error)
                failed += 1
                if not isinstance(error, UnreadableTablesError) or failed == _FAILED_IN_A_ROW:
                    server_error = error
        return statuses

    def read_storage_version(self, status: TableStatus) -> TableStatus:
        """Return a status whose version was read from the storage, by one listing request.

        Args:
            status: a status with ``needs_listing``, as `poll` returns it.

        Raises:
            PermissionDeniedError: (15) access to the storage is denied.
            UnauthenticatedError: (16) the storage refused the credentials.
            ServiceUnavailableError: (17) the storage can't be reached or failed.
        """
        version = object_store.latest_version(str(status.location), self.tables.config.storage_options)
        return replace(status, version=version or 0, needs_listing=False)

    def _poll_namespace(
        self, namespace: NamespaceId, named: dict[str, TableId], known: Mapping[TableId, object]
    ) -> dict[TableId, StatusOrError]:
        statuses: dict[TableId, StatusOrError] = {}
        hidden: bool | None = None
        try:
            for read in self.metastore.get_tables(namespace, list(named), columns=False):
                for name, error in read.failures.items():
                    is_denied = isinstance(error, PermissionDeniedError)
                    if is_denied and hidden is None:
                        hidden = self.metastore.hides_missing_tables(namespace)
                    may_be_missing = is_denied and hidden
                    table = named[name]
                    statuses[table] = TableStatus(table, denial=str(error)) if may_be_missing else error
                for catalog_table in read.tables:
                    table = named[catalog_table.id.name]
                    statuses[table] = _unless_unchanged(self._status(table, catalog_table), known.get(table))
        except NamespaceNotFoundError:
            pass  # all its tables are missing
        for table in named.values():
            if table not in statuses:
                statuses[table] = _unless_unchanged(TableStatus(table), known.get(table))
        return statuses

    def _status(self, table: TableId, catalog_table: CatalogTable) -> StatusOrError:
        try:
            table_properties.check_lance(catalog_table)
            location = str(self.tables.location_of(catalog_table))
            if not table_properties.is_managed(catalog_table):
                return TableStatus(table, location, needs_listing=True)
            return TableStatus(table, location, table_properties.managed_version(catalog_table))
        except LanceNamespaceError as error:
            return error


def _turn(known: Mapping[TableId, object], named: Mapping[str, TableId]) -> float:
    """Return the place of a database in a poll: databases that failed in the last poll follow, shuffled.

    In the same order, a few refused databases would end each poll before the same other databases.
    """
    first = next(iter(named.values()))
    return random.random() if isinstance(known.get(first), Exception) else 0.0  # noqa: S311 - not a secret


def _unless_unchanged(status: StatusOrError, known: object) -> StatusOrError:
    return known if isinstance(known, TableStatus) and known == status else status
