"""Searches among the tables of a catalog, before files of one are removed: others with its data, and clones.

Two tables may have the same location, or one inside the other; and a shallow clone refers to files of its
source. The counterparts for a metastore read the locations of all tables by few requests. Here, each table is
described by a request of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.formatting import format_examples
from airflow_provider_lancens.namespace.paging import all_names
from airflow_provider_lancens.namespace.storage.clones import Clone, Clones, clone_at
from airflow_provider_lancens.namespace.storage.location_overlap import ResolvedLocation
from airflow_provider_lancens.namespace.storage.manifests import Manifests

log = logging.getLogger(__name__)

_PAGE = 1000
MOST_READ = 1000
"""Most tables that a search reads, beginning with the table's own namespace; as in a metastore."""
_THREADS, _BATCH = 8, 1000

Id = tuple[str, ...]
Call = Callable[[dict[str, Any]], Any]


@dataclass(slots=True)
class CatalogListing:
    """One walk through the tables of a catalog."""

    list_namespaces: Call
    list_tables: Call
    unknown: list[str] = field(default_factory=list)
    """What couldn't be listed, and why."""

    def others(self, table: Id) -> Iterator[Id]:
        """Iterate over the identifiers of all tables but one, beginning with its namespace.

        Args:
            table: the identifier of that table.

        Raises:
            ServiceUnavailableError: (17) the catalog doesn't answer.
        """
        own = table[:-1]
        for namespace in (own, *(other for other in self._below(()) if other != own)):
            for name in self._listed("tables", self.list_tables, namespace):
                if (*namespace, name) != table:
                    yield (*namespace, name)

    def _below(self, namespace: Id) -> Iterator[Id]:
        yield namespace
        for name in self._listed("namespaces", self.list_namespaces, namespace):
            yield from self._below((*namespace, name))

    def _listed(self, what: str, call: Call, namespace: Id) -> Iterator[str]:
        request: dict[str, Any] = {"id": list(namespace), "limit": _PAGE}

        def page(token: str | None) -> tuple[Iterable[str], str | None]:
            try:
                found = call({**request, "page_token": token} if token else request)
            except (spec_errors.NamespaceNotFoundError, spec_errors.InvalidInputError):
                return (), None  # the namespace was dropped meanwhile, or the catalog has no such level
            except (spec_errors.UnsupportedOperationError, spec_errors.PermissionDeniedError) as error:
                if what == "tables":
                    self.unknown.append(f"the tables of {'$'.join(namespace) or 'the root'}: {error}")
                return (), None
            return getattr(found, what), found.page_token

        return all_names(page)


@dataclass(slots=True)
class CatalogOwners:
    """One search for the tables that share data with a table."""

    listing: CatalogListing
    location_of: Callable[[Id], str | None]
    """Returns the location of a table, whether this connection may use it or not."""
    table: Id
    """Identifier of the table."""
    location: str
    most: int | None
    """Most tables that are compared, beginning with the table's own namespace; None for all."""
    _unread: list[str] = field(default_factory=list)
    _exceeded: bool = False

    def first(self) -> tuple[Id, str] | None:
        """Return the identifier and the location of another table that shares the data; None without one.

        Raises:
            ServiceUnavailableError: (17) the catalog doesn't answer.
        """
        mine = ResolvedLocation(self.location)
        others = self.listing.others(self.table)
        compared = islice(others, self.most)
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="lance-owners") as pool:
            while batch := list(islice(compared, _BATCH)):
                for table, location in zip(batch, pool.map(self._location, batch), strict=True):
                    if location and ResolvedLocation(location).overlaps(mine):
                        return table, location
        self._exceeded = next(others, None) is not None
        return None

    @property
    def unknown(self) -> tuple[str, ...]:
        """Why there may be others after `first`: what couldn't be listed or described; empty if all was."""
        more = (
            [f"the catalog has more than the {self.most} tables that are compared"] if self._exceeded else []
        )
        unread = [f"{format_examples(self._unread)} can't be described"] if self._unread else []
        return (*self.listing.unknown, *more, *unread)

    def _location(self, table: Id) -> str | None:
        try:
            return self.location_of(table)
        except (spec_errors.TableNotFoundError, spec_errors.NamespaceNotFoundError):
            return None  # dropped meanwhile
        except spec_errors.ServiceUnavailableError:
            raise
        except spec_errors.LanceNamespaceError as error:
            log.info("Table %s isn't compared: %s", "$".join(table), error)
            self._unread.append("$".join(table))
            return None


@dataclass(slots=True)
class CatalogClones:
    """One search for the clones of a table."""

    listing: CatalogListing
    describe_table: Call
    source: Id
    """Identifier of the table."""
    location: str
    _unread: list[str] = field(default_factory=list)

    def search(self) -> Clones:
        """Search the catalog.

        Raises:
            ServiceUnavailableError: (17) it doesn't answer.
        """
        others = self.listing.others(self.source)
        read = list(islice(others, MOST_READ))
        exceeded = next(others, None) is not None
        resolved = ResolvedLocation(self.location)
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="lance-clones") as pool:
            found = [clone for clone in pool.map(lambda table: self._clone(table, resolved), read) if clone]
        unknown = [*self.listing.unknown]
        if exceeded:
            unknown.append(f"the catalog has more than the {MOST_READ} tables that are searched")
        if self._unread:
            unknown.append(f"{format_examples(self._unread)} can't be read")
        return Clones(tuple(found), tuple(unknown))

    def _clone(self, table: Id, source: ResolvedLocation) -> Clone | None:
        try:
            described = self.describe_table({"id": list(table), "vend_credentials": True})
            options: Mapping[str, str] = described.storage_options or {}
            if Manifests(described.location, options, is_optional=True).newest() is None:
                return None  # nothing was written yet
            return clone_at("$".join(table), described.location, options, source)
        except (spec_errors.TableNotFoundError, spec_errors.NamespaceNotFoundError):
            return None
        except spec_errors.ServiceUnavailableError:
            raise
        except (spec_errors.LanceNamespaceError, OSError, ValueError, RuntimeError) as error:
            log.info("Table %s isn't searched for references: %s", "$".join(table), error)
            self._unread.append("$".join(table))
            return None
