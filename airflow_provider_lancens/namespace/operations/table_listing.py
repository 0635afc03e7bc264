"""Lists of Lance tables of one or all databases, in sorted pages, with or without tables without data."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from urllib.parse import urlsplit

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.identifiers import DELIMITER, NamespaceId
from airflow_provider_lancens.namespace import table_properties
from airflow_provider_lancens.namespace.batch_reads import BatchRead
from airflow_provider_lancens.namespace.error_types import MissingBucketError
from airflow_provider_lancens.namespace.metastore_protocol import CatalogTable, Metastore
from airflow_provider_lancens.namespace.operations.recent_listings import ListingKey, RecentListings
from airflow_provider_lancens.namespace.paging import Page, PageRequest, token_after

log = logging.getLogger(__name__)

_TABLES, _NAMESPACES = "tables", "namespaces"
_LARGEST_BATCH = 500
"""Tables that are read before their storage is asked for their data."""


@dataclass(frozen=True, slots=True)
class TableListing:
    """Lister of Lance tables. It holds names; tables are read in batches, and only the page's."""

    metastore: Metastore
    is_only_declared: Callable[[CatalogTable], bool]
    listings: RecentListings = field(default_factory=RecentListings)

    def page(self, namespace: NamespaceId, request: PageRequest, *, declared: bool) -> Page:
        """List the tables of a database.

        Args:
            namespace: the database.
            request: the requested page.
            declared: whether to include tables without a dataset.
        """
        if declared:
            return self.listings.page(self._key(namespace), request, self._names(namespace))
        check = DataCheck(self.is_only_declared)
        if request.limit is None:
            return request.cut(self._all_with_data(namespace, check))
        names = self.listings.names(self._key(namespace), request, self._names(namespace))
        rest = names[request.start(names) :]
        names_found = list(islice(self._checked(namespace, rest, request.limit, check), request.limit))
        if len(names_found) < request.limit or names_found[-1] == rest[-1]:
            self.listings.forget(self._key(namespace))
            return Page(names_found, None)
        return Page(names_found, token_after(names_found[-1]))

    def page_of_all(self, request: PageRequest, *, declared: bool) -> Page:
        """List the full identifiers of the tables of all databases; tables before the page aren't read."""
        check = None if declared else DataCheck(self.is_only_declared)
        ids = (
            f"{database}{DELIMITER}{name}"
            for database in self._databases(NamespaceId(()), request.after or "")
            for name in self._names_after(database, request, check)
        )
        # Read one more than the page holds, to know whether there is another page.
        return request.cut(list(ids if request.limit is None else islice(ids, request.limit + 1)))

    def _databases(self, parent: NamespaceId, after: str) -> Iterator[NamespaceId]:
        """Iterate over the databases that have identifiers greater than `after`, in the order of these."""
        if len(parent) == self.metastore.namespace_levels:
            yield parent
            return
        request = PageRequest(after or None, limit=1)
        key = ListingKey(_NAMESPACES, parent)
        names = self.listings.names(key, request, partial(self.metastore.list_namespaces, parent))
        # A name may contain characters that sort before the delimiter.
        for name in sorted(names, key=lambda name: f"{name}{DELIMITER}"):
            child = parent.child(name)
            prefix = f"{child}{DELIMITER}"
            if prefix > after or after.startswith(prefix):
                yield from self._databases(child, after)

    def _names_after(
        self, database: NamespaceId, request: PageRequest, check: DataCheck | None
    ) -> Iterator[str]:
        prefix = f"{database}{DELIMITER}"
        after = request.after or ""
        inner = PageRequest(after.removeprefix(prefix) if after.startswith(prefix) else None, request.limit)
        try:
            if check and request.limit is None:
                names_with_data = self._all_with_data(database, check)
                yield from names_with_data[inner.start(names_with_data) :]
                return
            names = self.listings.names(self._key(database), inner, self._names(database))
            rest = names[inner.start(names) :]
            limit = request.limit or _LARGEST_BATCH
            yield from self._checked(database, rest, limit, check) if check else rest
        except spec_errors.NamespaceNotFoundError:
            log.info("Namespace %s was dropped while its tables were listed", database)

    def _checked(
        self, namespace: NamespaceId, names: Sequence[str], limit: int, check: DataCheck
    ) -> Iterator[str]:
        """Iterate over the tables of sorted names that have data; one batch of them is read ahead."""
        batch = min(limit, _LARGEST_BATCH)
        for start in range(0, len(names), batch):
            reads = self.metastore.get_tables(namespace, names[start : start + batch])
            tables = [table for read in reads for table in self._readable(namespace, read)]
            tables.sort(key=lambda table: table.id.name)
            yield from (table.id.name for table in tables if check.has_data(table))

    def _all_with_data(self, namespace: NamespaceId, check: DataCheck) -> list[str]:
        return sorted(
            table.id.name
            for read in self.metastore.scan_tables(namespace, lance_only=True)
            for table in self._readable(namespace, read)
            if table_properties.is_lance(table) and check.has_data(table)
        )

    def _readable(self, namespace: NamespaceId, read: BatchRead) -> Sequence[CatalogTable]:
        for name, error in read.failures.items():
            log.warning("Table %s is not listed, since it cannot be read: %s", namespace.table(name), error)
        return read.tables

    def _names(self, namespace: NamespaceId) -> Callable[[], Iterable[str]]:
        return partial(self.metastore.list_lance_tables, namespace)

    def _key(self, namespace: NamespaceId) -> ListingKey:
        return ListingKey(_TABLES, namespace)


_UNKNOWN = (
    spec_errors.PermissionDeniedError,
    spec_errors.UnauthenticatedError,
    spec_errors.ServiceUnavailableError,
    spec_errors.ThrottlingError,
)
"""The storage didn't say whether a dataset is there."""


class DataCheck:
    """Check tables one by one for data; a storage that didn't respond isn't checked again.

    A table that can't have a dataset has none: its location or its bucket is missing, or isn't a storage
    that Lance reads. A table whose storage doesn't answer, or denies access, counts as a
    table with data: a list without it would hide data that is only out of reach. Both are logged.
    """

    def __init__(self, is_only_declared: Callable[[CatalogTable], bool]) -> None:
        """Take the question that is asked of each table."""
        self._is_only_declared = is_only_declared
        self._unavailable: dict[str, spec_errors.LanceNamespaceError] = {}

    def has_data(self, table: CatalogTable) -> bool:
        """Whether a dataset lies at a table's location, or may lie there."""
        try:
            return not self._ask(table)
        except spec_errors.LanceNamespaceError as error:
            may_have_data = isinstance(error, _UNKNOWN) and not isinstance(error, MissingBucketError)
            if may_have_data:
                log.warning(
                    "Table %s is listed, but whether it has data could not be checked: %s", table.id, error
                )
            else:
                log.warning("Table %s is not listed, since it cannot have data: %s", table.id, error)
            return may_have_data

    def _ask(self, table: CatalogTable) -> bool:
        storage = _storage_of(table.location or "")
        if storage in self._unavailable:
            raise self._unavailable[storage]
        try:
            return self._is_only_declared(table)
        except spec_errors.ServiceUnavailableError as error:
            # Each further check would wait for a timeout, for maybe a thousand tables.
            self._unavailable[storage] = error
            raise


def _storage_of(location: str) -> str:
    """The scheme and the bucket, or the host."""
    try:
        parts = urlsplit(location)
    except ValueError:
        return location
    return f"{parts.scheme}://{parts.netloc}"
