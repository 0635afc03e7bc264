"""Tables: declare, register, list, describe, rename, deregister, drop (specification: Basic Operations)."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lance_namespace.errors import (
    InvalidInputError,
    LanceNamespaceError,
    TableNotFoundError,
    UnsupportedOperationError,
)

from airflow_provider_lancens.identifiers import NamespaceId, TableId
from airflow_provider_lancens.namespace import data, marks, storage
from airflow_provider_lancens.namespace.config import StorageConfig
from airflow_provider_lancens.namespace.locations import TABLE_SUFFIX, as_uri, check_location, join, normalize
from airflow_provider_lancens.namespace.managed import ManagedVersions
from airflow_provider_lancens.namespace.manifests import Manifests
from airflow_provider_lancens.namespace.metastore import Metastore, Table
from airflow_provider_lancens.namespace.paging import Page, page_of

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TableOperations:
    """The specification's table operations over any metastore."""

    metastore: Metastore
    config: StorageConfig

    def declare(self, table: TableId, location: str | None, properties: Mapping[str, str]) -> Table:
        """Write a new entry, and no data set.

        Args:
            table: its identifier.
            location: its root; None for ``{database location}/{table}.lance``.
            properties: the caller's parameters.

        Raises:
            NamespaceNotFoundError: (1) its namespace doesn't exist.
            TableAlreadyExistsError: (5) an entry of any kind has that name.
            InvalidInputError: (13) the location or a property can't be what it is.
            UnsupportedOperationError: (0) it is to be managed by a metastore that can't compare-and-set.
        """
        entry = self._new_entry(table, location, properties)
        self.metastore.create_table(entry)
        return entry

    def register(
        self, table: TableId, location: str | None, properties: Mapping[str, str], *, overwrite: bool
    ) -> Table:
        """Write an entry for a data set that lies at `location` already; a managed one starts at its version.

        Raises:
            InvalidInputError: (13) no location.
            NamespaceNotFoundError: (1), TableAlreadyExistsError: (5) as `declare`.
        """
        if not location:
            raise InvalidInputError(f"table {table}: registering needs the location of its data set")
        entry = self._new_entry(table, location, properties)
        if overwrite:
            self._forget_lance_entry(table)
        if marks.is_managed(entry):
            newest = storage.latest_version(location_of(entry), self.config.storage_options) or 0
            entry = replace(entry, parameters={**entry.parameters, marks.VERSION: str(newest)})
        self.metastore.create_table(entry)
        return entry

    def get(self, table: TableId) -> Table:
        """The entry of a Lance table.

        Raises:
            TableNotFoundError: (4) no entry has that name.
            InvalidInputError: (13) the entry isn't a Lance table's.
        """
        entry = self.metastore.get_table(table)
        marks.check_lance(entry)
        return entry

    def is_only_declared(self, entry: Table) -> bool:
        """Whether no data set lies at the entry's location yet."""
        if marks.is_managed(entry) and marks.managed_version(entry):
            return False
        return storage.latest_version(location_of(entry), self.config.storage_options) is None

    def list(self, namespace: NamespaceId, token: str | None, limit: int | None, *, declared: bool) -> Page:
        """The names of the Lance tables of a namespace, sorted and cut into pages.

        Args:
            namespace: the database.
            token: of the page before.
            limit: the most names to return.
            declared: whether tables without a data set count.
        """
        names = self.metastore.list_lance_tables(namespace)
        if not declared:
            names = [e.id.name for e in self._with_data(namespace, names)]
        return page_of(names, token, limit)

    def list_all(self, token: str | None, limit: int | None, *, declared: bool) -> Page:
        """The full identifiers of all Lance tables below the root, sorted and cut into pages."""
        names = (
            str(namespace.table(name))
            for namespace in self._databases(NamespaceId(()))
            for name in self.list(namespace, None, None, declared=declared).names
        )
        return page_of(names, token, limit)

    def rename(self, table: TableId, to: TableId) -> None:
        """Give a Lance table another name; its data stays where it is.

        Raises:
            TableAlreadyExistsError: (5) the new name is taken.
            UnsupportedOperationError: (0) the entry is typed MANAGED, or the metastore can't rename.
        """
        entry = self.get(table)
        if not entry.external:
            raise UnsupportedOperationError(
                f"table {table}: its entry is typed MANAGED, so the metastore would move its folder; "
                f"deregister it and register it as {to}"
            )
        self.metastore.rename_table(table, to)

    def deregister(self, table: TableId) -> Table:
        """Drop the entry of a Lance table; its data stays, whoever wrote the entry."""
        entry = self.get(table)
        self._finish(entry)
        self.metastore.drop_table(table)
        return entry

    def drop(self, table: TableId) -> Table:
        """Remove Lance's own files below a table's location, then its entry (promise 3).

        The entry goes last, so that a drop that was interrupted is run again to its end.

        Raises:
            InvalidInputError: (13) another entry points at the same data; nothing is dropped.
        """
        entry = self.get(table)
        self._check_sole_owner(entry)
        self._finish(entry)
        data.remove(location_of(entry), self.config.storage_options)
        self.metastore.drop_table(table)
        return entry

    def _new_entry(self, table: TableId, location: str | None, properties: Mapping[str, str]) -> Table:
        parameters = marks.entry_parameters(properties)
        if parameters[marks.MANAGED_BY] == marks.BY_IMPLEMENTATION:
            self.metastore.require_compare_and_set(table.namespace)
        place = self._default_location(table) if location is None else check_location(location)
        return Table(table, as_uri(place), parameters)

    def _finish(self, entry: Table) -> None:
        # Without the entry, nobody could tell an interrupted commit from one that was refused.
        if not marks.is_managed(entry) or not entry.location:
            return
        try:
            ManagedVersions(entry, Manifests(location_of(entry), self.config.storage_options)).finish()
        except LanceNamespaceError as error:
            log.warning("Table %s: its entry goes, but its last commit isn't finished: %s", entry.id, error)

    def _check_sole_owner(self, entry: Table) -> None:
        # Any database may hold the other entry, so all are asked: a drop is rare and final.
        mine = location_of(entry)
        for namespace in self._databases(NamespaceId(())):
            names = self.metastore.list_tables(namespace)
            for other in self.metastore.get_tables(namespace, names):
                if other.id != entry.id and other.location and location_of(other) == mine:
                    raise InvalidInputError(
                        f"table {entry.id}: entry {other.id} points at the same data, {mine}; "
                        f"deregister one of them instead"
                    )

    def _databases(self, parent: NamespaceId) -> Iterator[NamespaceId]:
        if len(parent) == self.metastore.namespace_levels:
            yield parent
            return
        for name in sorted(self.metastore.list_namespaces(parent)):
            yield from self._databases(parent.child(name))

    def _with_data(self, namespace: NamespaceId, names: Sequence[str]) -> Iterator[Table]:
        for entry in self.metastore.get_tables(namespace, names):
            if not self.is_only_declared(entry):
                yield entry

    def _default_location(self, table: TableId) -> str:
        namespace = self.metastore.get_namespace(table.namespace)
        base = namespace.location or self.metastore.default_location(table.namespace, self.config.root)
        return join(normalize(base), f"{table.name}{TABLE_SUFFIX}")

    def _forget_lance_entry(self, table: TableId) -> None:
        try:
            self.deregister(table)
        except TableNotFoundError:
            return


def location_of(entry: Table) -> str:
    """An entry's location as Lance takes it.

    Raises:
        InvalidInputError: (13) the entry has none.
    """
    if not entry.location:
        raise InvalidInputError(f"table {entry.id}: its entry has no location; deregister and register it")
    return normalize(entry.location)
