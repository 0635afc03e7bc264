"""Search for other tables of a catalog at the location of one, before its data is removed.

Two tables may have the same location, or one inside the other. The counterpart for a metastore reads the
locations of all tables by few requests. Here, each table is described by a request of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.catalog.catalog_listing import CatalogListing, Id
from airflow_provider_lancens.namespace.storage.location_overlap import ResolvedLocation
from airflow_provider_lancens.namespace.storage.missing_files import example_of

log = logging.getLogger(__name__)

_THREADS = 8
_BATCH = 1000


@dataclass(slots=True)
class CatalogOwners:
    """One search for the tables that share data with a table."""

    listing: CatalogListing
    location_of: Callable[[Id], str | None]
    """Returns the location of a table, whether this connection may use it or not."""
    table: Id
    """Its identifier."""
    location: str
    most: int | None
    """Tables that are compared at most, those of the table's own namespace first; None for all."""
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
        unread = [f"{example_of(self._unread)} can't be described"] if self._unread else []
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
