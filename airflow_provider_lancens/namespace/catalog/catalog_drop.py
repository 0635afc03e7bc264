"""Drop of a table of a catalog: what is checked before, and how its data is removed from a folder.

Of a folder's catalog, this package deletes the data itself, and only files of Lance and of its own (guarantee
3): the implementation would delete the whole folder, with whatever others have in it. Any other catalog
deletes the data, and decides what that is.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.catalog.catalog_search import (
    MOST_READ,
    CatalogListing,
    CatalogOwners,
    Id,
)
from airflow_provider_lancens.namespace.catalog.folder_catalog import MARKERS, FolderCatalog
from airflow_provider_lancens.namespace.locations import shown_location
from airflow_provider_lancens.namespace.storage import purge
from airflow_provider_lancens.namespace.storage.clones import Clones
from airflow_provider_lancens.namespace.storage.manifests import Manifests
from airflow_provider_lancens.namespace.storage.purge import DropPlan
from airflow_provider_lancens.namespace.storage.write_leases import wait_for_writes
from airflow_provider_lancens.redaction import on_one_line, redact

log = logging.getLogger(__name__)

_NAMED = 3


@dataclass(frozen=True, slots=True)
class CatalogDrop:
    """One drop of a table."""

    table: TableId
    location: str
    storage_options: Mapping[str, str]
    folder: FolderCatalog | None
    """The catalog, if it is a folder; else None."""
    listing: CatalogListing
    location_of: Callable[[Id], str | None]
    """Returns the location of a table, allowed or not; None if there is no such table."""

    def check(self, clones_of: Callable[[], Clones]) -> None:
        """Check that the table can be dropped.

        Args:
            clones_of: returns its clones that are known.

        Raises:
            InvalidInputError: (13) another table of the catalog has the same location or an overlapping one,
                or is a clone that refers to the data; or of a folder: the location overlaps the
                catalog's entries, or the table exists by a folder that has other files.
            ConcurrentModificationError: (14) a write to it is running.
        """
        self._check_sole_owner()
        self._check_no_others()
        files = Manifests(self.location, self.storage_options, is_optional=True)
        wait_for_writes(files, f"table {str(self.table)!r} can't be dropped")
        clones_of().check_none(self.table)

    def plan(self) -> DropPlan:
        """Return what the drop deletes, and which other files are there."""
        plan = purge.plan(self.location, self.storage_options, MARKERS)
        return replace(plan, keeps_others=self.folder is not None)

    def remove_from(self, folder: FolderCatalog, remove_entry: Callable[[], object]) -> None:
        """Remove the data, then the entry, so that an interrupted drop can be rerun.

        Args:
            folder: the catalog.
            remove_entry: removes the entry of the table from it.

        Raises:
            ConcurrentModificationError: (14) the table exists by its folder, in which others wrote meanwhile.
            InvalidInputError: (13) it does, and nothing of Lance's was left there.
        """
        removed = purge.remove(self.location, self.storage_options, MARKERS)
        by_folder = folder.is_folder(self.table.parts, self.location)
        if folder.has_entries and (by_folder or self.location_of(self.table.parts) == self.location):
            with contextlib.suppress(spec_errors.TableNotFoundError):
                remove_entry()
        if by_folder and self.location_of(self.table.parts) == self.location:
            # A retry can only help if this call has removed anything.
            kind = spec_errors.ConcurrentModificationError if removed else spec_errors.InvalidInputError
            raise kind(
                f"table {self.table}: its data was deleted, but its folder {self._shown(self.location)} "
                "exists, and so does the table: others wrote there meanwhile, or left empty folders; remove "
                "these, or drop the table again"
            )

    def _check_sole_owner(self) -> None:
        """Refuse to remove data that another table, or the catalog itself, has too.

        All tables of a folder are compared, since a drop is rare and final.
        """
        if self.folder is not None:
            self.folder.check_data(self.location, f"table {self.table}")
        most = None if self.folder is not None else MOST_READ
        owners = CatalogOwners(self.listing, self._compared, self.table.parts, self.location, most)
        found = owners.first()
        if found is not None:
            other, its = found
            raise spec_errors.InvalidInputError(
                f"table {self.table}: table {'$'.join(other)} points to the same data: {self._shown(its)}, "
                f"and this one to {self._shown(self.location)}; {self._advice(other, its)}"
            )
        for reason in owners.unknown:
            log.warning(
                "Table %s: another table may have its data, which a drop deletes: %s", self.table, reason
            )

    def _advice(self, other: Id, its: str) -> str:
        if self.folder is None:
            return "deregister one of them instead"
        if self.folder.is_folder(other, its):
            return f"deregister table {self.table} instead, then drop the other one"
        if self.folder.is_folder(self.table.parts, self.location):
            return "deregister the other one first"
        return "deregister one of them instead"

    def _compared(self, table: Id) -> str | None:
        certain = None if self.folder is None else self.folder.certain_location(table)
        return certain or self.location_of(table)

    def _check_no_others(self) -> None:
        """Refuse to drop a table that exists as long as its folder, if other files keep that."""
        if self.folder is None or not self.folder.is_folder(self.table.parts, self.location):
            return
        plan = self.plan()
        if plan.other_files:
            named = ", ".join(map(on_one_line, plan.others[:_NAMED]))
            more = ", …" if plan.other_files > _NAMED else ""
            raise spec_errors.InvalidInputError(
                f"table {self.table} can't be dropped: impl=dir knows it by its folder "
                f"{self._shown(self.location)}, which has {plan.other_files} files that are not Lance's and "
                f"that a drop keeps: {named}{more}; move them away first"
            )

    @staticmethod
    def _shown(location: str) -> str:
        return shown_location(redact(location))
