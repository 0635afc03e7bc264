"""Table versions: create, describe, list, advance (specification: implementation-managed tables)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace import table_properties
from airflow_provider_lancens.namespace.error_types import PassedVersionError
from airflow_provider_lancens.namespace.managed.commit_attempt import CommitAttempt
from airflow_provider_lancens.namespace.managed.high_water_mark import HighWaterMark
from airflow_provider_lancens.namespace.managed.managed_versions import ManagedVersions
from airflow_provider_lancens.namespace.managed.publication import CommitRecord
from airflow_provider_lancens.namespace.metastore_protocol import CatalogTable, ParameterChange
from airflow_provider_lancens.namespace.operations.table_operations import TableOperations
from airflow_provider_lancens.namespace.storage.manifests import Manifest, Manifests

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class VersionOperations:
    """Operations on table versions over any metastore."""

    tables: TableOperations
    finishes: bool = True
    """Whether a read finishes a commit that was interrupted."""

    def create(self, table: TableId, commit: CommitRecord) -> Manifest:
        """Commit a staged manifest as the next version of a managed table; see `CommitAttempt`."""
        return CommitAttempt(self.tables.metastore, table, commit, self.managed).make()

    def describe(self, table: TableId, version: int) -> Manifest:
        """Return one version.

        Raises:
            TableVersionNotFoundError: (11) there is no such version.
            InvalidTableStateError: (19) metastore and storage disagree.
        """
        return self._retried_if_changed(table, lambda catalog_table: self.find(catalog_table, version))

    def find(self, catalog_table: CatalogTable, version: int) -> Manifest:
        """Return one version of a catalog table that was read; raises as `describe`."""
        if table_properties.is_managed(catalog_table):
            return self.managed(catalog_table).at(version)
        manifest = self.manifests(catalog_table).find(version)
        if manifest is None:
            raise spec_errors.TableVersionNotFoundError(f"table {catalog_table.id} has no version {version}")
        return manifest

    def newest(self, table: TableId) -> Manifest | None:
        """Return the newest version; None if no dataset was written yet.

        Raises:
            InvalidTableStateError: (19) metastore and storage disagree.
        """
        return self._retried_if_changed(table, self._newest)

    def all(self, table: TableId) -> Mapping[int, Manifest]:
        """Return every version.

        Raises:
            InvalidTableStateError: (19) metastore and storage disagree.
        """
        return self._retried_if_changed(
            table,
            lambda catalog_table: (
                self.managed if table_properties.is_managed(catalog_table) else self.manifests
            )(catalog_table).all(),
        )

    def response_version(self, catalog_table: CatalogTable, requested: int | None) -> int | None:
        """Return the version for a response: the requested one, else the metastore's if it is the authority.

        Raises:
            TableVersionNotFoundError: (11) the requested version doesn't exist.
        """
        latest = (
            table_properties.managed_version(catalog_table)
            if table_properties.is_managed(catalog_table)
            else None
        )
        if requested is None or requested == latest:
            return latest
        return self.find(catalog_table, requested).version

    def advance(self, table: TableId, expected: int, new: int) -> bool:
        """Move a managed table's version, for writers that made `new` without this namespace.

        Args:
            table: an implementation-managed table.
            expected: the version that it must be at.
            new: the version to move it to; its manifest must be on the storage.

        Returns:
            False if it was already at `new`, as on a repeated request.

        Raises:
            ConcurrentModificationError: (14) it is at neither version; a PassedVersionError if it is past
                `expected`.
            TableVersionNotFoundError: (11) `new` isn't on the storage.
            InvalidInputError: (13) the table isn't implementation-managed, or `new` isn't newer.
            InvalidTableStateError: (19) a direct writer has made another version `expected`.
        """
        if new <= expected:
            raise spec_errors.InvalidInputError(
                f"version: expected one above expected_version={expected}, got {new}"
            )

        def decide(catalog_table: CatalogTable) -> ParameterChange | None:
            table_properties.check_managed(catalog_table)
            is_there = table_properties.managed_version(catalog_table) == new
            return None if is_there else self._advanced(catalog_table, expected, new)

        update = self.tables.metastore.update_table(table, decide)
        if update.changed:
            HighWaterMark(self.manifests(update.table)).move_to(new)
        return update.changed

    def managed(self, catalog_table: CatalogTable) -> ManagedVersions:
        """Return the versions of a managed table."""
        return ManagedVersions(catalog_table, self.manifests(catalog_table), self.finishes)

    def manifests(self, catalog_table: CatalogTable) -> Manifests:
        """Return the manifests at a table's location."""
        return Manifests(self.tables.location_of(catalog_table), self.tables.config.storage_options)

    def _advanced(self, catalog_table: CatalogTable, expected: int, new: int) -> ParameterChange:
        managed = self.managed(catalog_table)
        if managed.version != expected:
            kind = (
                PassedVersionError if managed.version > expected else spec_errors.ConcurrentModificationError
            )
            raise kind(f"table {catalog_table.id}: it is at version {managed.version}, expected {expected}")
        managed.finish()  # `new` may be based on a commit that isn't finished yet
        if managed.manifests.find(new) is None:
            raise spec_errors.TableVersionNotFoundError(
                f"table {catalog_table.id}: no manifest of version {new} at "
                f"{managed.manifests.location}; write it first"
            )
        return managed.move({table_properties.VERSION: str(new)})

    def _newest(self, catalog_table: CatalogTable) -> Manifest | None:
        if table_properties.is_managed(catalog_table):
            return self.managed(catalog_table).newest()
        manifests = self.manifests(catalog_table)
        version = manifests.newest()
        return manifests.find(version) if version else None

    def _retried_if_changed(self, table: TableId, read: Callable[[CatalogTable], T]) -> T:
        catalog_table = self.tables.get(table)
        while True:
            try:
                return read(catalog_table)
            except spec_errors.InvalidTableStateError:
                # The table may have been changed or dropped between reading the catalog and the storage.
                before, catalog_table = catalog_table, self.tables.get(table)
                if catalog_table == before:
                    raise
