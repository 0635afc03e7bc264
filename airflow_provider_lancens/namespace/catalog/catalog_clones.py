"""Search for the shallow clones of a table among the tables of a catalog, before files of it are removed."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.catalog.catalog_listing import MOST_READ, Call, CatalogListing, Id
from airflow_provider_lancens.namespace.storage.clones import Clone, Clones, clone_at
from airflow_provider_lancens.namespace.storage.location_overlap import ResolvedLocation
from airflow_provider_lancens.namespace.storage.manifests import Manifests
from airflow_provider_lancens.namespace.storage.missing_files import example_of

log = logging.getLogger(__name__)

_THREADS = 8


@dataclass(slots=True)
class CatalogClones:
    """One search for the clones of a table."""

    listing: CatalogListing
    describe_table: Call
    source: Id
    """Its identifier."""
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
            found = [one for one in pool.map(lambda table: self._clone(table, resolved), read) if one]
        unknown = [*self.listing.unknown]
        if exceeded:
            unknown.append(f"the catalog has more than the {MOST_READ} tables that are searched")
        if self._unread:
            unknown.append(f"{example_of(self._unread)} can't be read")
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
