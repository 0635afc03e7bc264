"""Search for the shallow clones of a table among the tables of a metastore.

It determines which files of the source may be removed. A table that can't be read doesn't prevent the removal
forever, since any client could have registered it: it is logged. If the storage of the source itself fails
for a moment, nothing is removed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.formatting import format_examples
from airflow_provider_lancens.identifiers import NamespaceId, TableId
from airflow_provider_lancens.namespace import table_properties
from airflow_provider_lancens.namespace.config import StorageConfig
from airflow_provider_lancens.namespace.locations import Location
from airflow_provider_lancens.namespace.metastore_protocol import CatalogTable, Metastore
from airflow_provider_lancens.namespace.operations.connection_stores import ConnectionStores
from airflow_provider_lancens.namespace.storage.clones import Clone, Clones, clone_at
from airflow_provider_lancens.namespace.storage.location_overlap import ResolvedLocation, store_of
from airflow_provider_lancens.namespace.storage.manifests import Manifests

log = logging.getLogger(__name__)

_TRIES, _THREADS = 2, 32
_DENIED = (spec_errors.PermissionDeniedError, spec_errors.UnauthenticatedError)
"""What a metastore answers to credentials that may not list a database, each time."""


@dataclass(slots=True)
class CloneSearch:
    """One search for the clones of a table."""

    metastore: Metastore
    config: StorageConfig
    stores: ConnectionStores
    table: TableId
    """The source."""
    location: str
    """The location of the source."""
    most: int
    """How many tables are read at most, beginning with the source's database."""
    _unknown: list[str] = field(default_factory=list)
    _unread: list[str] = field(default_factory=list)

    def in_listing(self) -> Clones:
        """Search the databases that may be listed, the source's first, until there are enough tables.

        Raises:
            ServiceUnavailableError: (17) the metastore, or the storage of the source, doesn't answer.
        """
        return self.among(table for database in self._databases() for table in self._lance_tables(database))

    def among(self, tables: Iterable[CatalogTable]) -> Clones:
        """Search the Lance tables that are given.

        Args:
            tables: Lance tables, beginning with the source's database.

        Raises:
            ServiceUnavailableError: (17) the storage of the source doesn't answer.
        """
        source = ResolvedLocation(self.location)
        others = (table for table in tables if table.id != self.table)
        read = list(islice(others, self.most))
        if next(others, None) is not None:
            self._unknown.append(f"the metastore has more than the {self.most} tables that are searched")
        found: list[Clone] = []
        if read:
            with ThreadPoolExecutor(min(_THREADS, len(read)), thread_name_prefix="lance-clones") as pool:
                found = [clone for clone in pool.map(lambda table: self._clone(table, source), read) if clone]
        if self._unread:
            self._unknown.append(f"{format_examples(self._unread)} can't be read")
        return Clones(tuple(found), tuple(self._unknown))

    def _databases(self) -> Iterator[NamespaceId]:
        own = self.table.namespace
        yield own
        yield from (database for database in self._below(NamespaceId(())) if database != own)

    def _below(self, parent: NamespaceId) -> Iterator[NamespaceId]:
        if len(parent) == self.metastore.namespace_levels:
            yield parent
            return
        try:
            names = self.metastore.list_namespaces(parent)
        except spec_errors.NamespaceNotFoundError:  # dropped meanwhile
            return
        except _DENIED as error:
            self._unknown.append(f"{parent if parent.parts else 'the databases'} can't be listed: {error}")
            return
        for name in names:
            yield from self._below(parent.child(name))

    def _lance_tables(self, database: NamespaceId) -> Iterator[CatalogTable]:
        try:
            for read in self.metastore.scan_tables(database, lance_only=True):
                self._unread += (str(database.table(name)) for name in read.failures)
                yield from filter(table_properties.is_lance, read.tables)
        except spec_errors.NamespaceNotFoundError:  # dropped meanwhile
            return
        except _DENIED as error:
            self._unknown.append(f"the tables of {database} can't be listed: {error}")

    def _clone(self, table: CatalogTable, source: ResolvedLocation) -> Clone | None:
        try:
            location = table_properties.location_of(table, self.config.allowed)
            self.stores.check(location, table.id.namespace, f"table {table.id}")
        except spec_errors.LanceNamespaceError as error:
            # This connection can't read the table, which may be in any other store.
            log.info("Table %s isn't searched for references to table %s: %s", table.id, self.table, error)
            return None
        for _ in range(_TRIES):
            try:
                return clone_at(str(table.id), location, self.config.storage_options, source)
            except (spec_errors.LanceNamespaceError, OSError, ValueError, RuntimeError) as error:
                if not self._has_version(location):
                    return None
                reason = error
        log.info("Table %s isn't searched for references to table %s: %s", table.id, self.table, reason)
        self._unread.append(str(table.id))
        return None

    def _has_version(self, location: Location) -> bool:
        """Return whether a table that couldn't be opened has a version.

        Raises:
            ServiceUnavailableError: (17) it is in the source's store, which doesn't answer.
        """
        files = Manifests(location, self.config.storage_options)
        try:
            newest = files.newest()
            return newest is not None and files.read_version(newest) is not None
        except spec_errors.ServiceUnavailableError:
            if store_of(location) == store_of(self.location):
                raise
            return True
        except spec_errors.LanceNamespaceError:
            return True
