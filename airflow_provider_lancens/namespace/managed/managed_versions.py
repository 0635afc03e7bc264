"""Versions of implementation-managed tables: the metastore's ``version`` is the table's version.

1. The manifest that Lance staged for version N is recorded.
2. ``version`` moves from N-1 to N by compare-and-set on the server, together with the name of the staged
   manifest. **That is the commit**: before it nothing happened, after it version N is the recorded
   manifest, even if any process dies.
3. The recorded manifest gets its final name by put-if-absent, so that readers by path see it too.

The next reader or writer finishes an interrupted commit; docs/managed-tables.md shows every point
at which one can be interrupted.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace import table_properties
from airflow_provider_lancens.namespace.managed.high_water_mark import HighWaterMark
from airflow_provider_lancens.namespace.managed.publication import CommitRecord, Publication
from airflow_provider_lancens.namespace.metastore_protocol import CatalogTable, ParameterChange
from airflow_provider_lancens.namespace.storage.manifests import Manifest, Manifests

log = logging.getLogger(__name__)

_PAUSES = (0.05, 0.2)
"""Seconds in which a running writer names its manifest."""


@dataclass(frozen=True, slots=True)
class ManagedVersions:
    """Versions of a managed table according to its catalog table."""

    catalog_table: CatalogTable
    manifests: Manifests
    finishes: bool = True
    """Whether a read finishes a commit that was interrupted; else it returns the recorded manifest."""

    @property
    def version(self) -> int:
        """Newest version; 0 while the table is declared and empty."""
        return table_properties.managed_version(self.catalog_table)

    def newest(self) -> Manifest | None:
        """Return the newest version's manifest, None for version 0; it may finish an interrupted commit.

        Raises:
            InvalidTableStateError: (19) it is gone, or the table is at 0 and a direct writer wrote versions.
        """
        if self.version:
            return self.committed()
        if beyond := self.manifests.newest():
            # If it gets no version, Lance lists the storage itself, and shows uncommitted versions.
            raise unknown_versions_error(self.catalog_table.id, self.manifests, beyond, self.version)
        return None

    def at(self, version: int) -> Manifest:
        """Return one version's manifest.

        Raises:
            TableVersionNotFoundError: (11) there is no such version; a direct writer's doesn't count.
        """
        if version == self.version and version:
            return self.committed()
        manifest = self.manifests.find(version) if 0 < version < self.version else None
        if manifest is None:
            raise spec_errors.TableVersionNotFoundError(
                f"table {self.catalog_table.id} has no version {version}"
            )
        return manifest

    def all(self) -> dict[int, Manifest]:
        """Return all versions but the versions that a direct writer made above the metastore's version."""
        newest = self.newest()
        if newest is None:
            return {}
        older = {v: manifest for v, manifest in self.manifests.all().items() if v < self.version}
        return {**older, self.version: newest}

    def committed(self) -> Manifest:
        """Return the manifest of the newest version, which is above 0.

        Raises:
            InvalidTableStateError: (19) it is gone.
        """
        commit = CommitRecord.of(self.catalog_table)
        # Look for the record first: a manifest without a record already has its final name.
        recorded = self.manifests.find_at(commit.recorded_path, commit.version) if commit else None
        if commit is None or recorded is None:
            return self._final_manifest()
        if not self.finishes:
            return self._readable(commit, recorded)
        try:
            return Publication(commit).finish(self.manifests) or self._final_manifest()
        except spec_errors.LanceNamespaceError as error:
            # A reader may lack write access; the recorded manifest is the version, too.
            log.info(
                "Table %s: using the recorded manifest, since it could not be published: %s",
                self.catalog_table.id,
                error,
            )
            return recorded

    def next(self, publication: Publication) -> ParameterChange:
        """Record a staged manifest, and return the change of the catalog table that commits it.

        Raises:
            ConcurrentModificationError: (14) that version exists, or isn't the next one.
            InvalidTableStateError: (19) metastore and storage disagree. Lance may have built the manifest on
                the storage's versions, so that it would lose committed data.
        """
        commit = publication.commit
        if commit.version > self.version:
            self.finish()
            self._check_not_bypassed(commit)
        if commit.version != self.version + 1:
            raise spec_errors.ConcurrentModificationError(
                f"table {self.catalog_table.id}: cannot commit version {commit.version} after version "
                f"{self.version}: another writer committed first"
            )
        publication.record(self.manifests)
        return self.move(
            {table_properties.VERSION: str(commit.version), table_properties.COMMIT: commit.as_parameter()}
        )

    def move(self, parameters: dict[str, str]) -> ParameterChange:
        """Return the change to another version, conditional on the table still being at this one.

        Raises:
            InvalidTableStateError: (19) the parameter ``version`` is missing.
        """
        if table_properties.VERSION not in self.catalog_table.parameters:
            raise spec_errors.InvalidTableStateError(
                f"table {self.catalog_table.id}: its catalog table has no parameter "
                f"{table_properties.VERSION!r} to compare; adopt the storage's newest version"
            )
        authority = (
            table_properties.BY_STORAGE
            if parameters.get(table_properties.MANAGED_BY) == table_properties.BY_STORAGE
            else parameters[table_properties.VERSION]
        )
        return ParameterChange(
            {**parameters, table_properties.STATE: table_properties.new_state(authority)},
            remove=(table_properties.COMMIT,),
            expect=table_properties.unchanged(self.catalog_table),
        )

    def finish(self) -> None:
        """Publish the newest commit if that is still to be done.

        Raises:
            InvalidTableStateError: (19) another manifest has its final name, or the commit record is invalid.
            LanceNamespaceError: (15, 16, 17) the storage failed.
        """
        commit = CommitRecord.of(self.catalog_table)
        if commit and self.manifests.stat(commit.recorded_path):
            Publication(commit).finish(self.manifests)

    def is_diverged(self) -> bool:
        """Whether a direct writer's manifest has the final name of the version that was committed here."""
        commit = CommitRecord.of(self.catalog_table)
        recorded = self.manifests.read(commit.recorded_path) if commit else None
        if commit is None or recorded is None:
            return False
        return self.manifests.read(commit.final_path) not in (None, recorded)

    def _readable(self, commit: CommitRecord, recorded: Manifest) -> Manifest:
        """Return where a version can be read whose manifest is still recorded, without changing anything."""
        for pause in _PAUSES:
            if final := self.manifests.find_at(commit.final_path, commit.version):
                return recorded if self.is_diverged() else final
            # A live writer is about to rename the manifest, and to remove the record.
            time.sleep(pause)
            if self.manifests.stat(commit.recorded_path) is None:
                return self._final_manifest()
        return recorded

    def _check_not_bypassed(self, commit: CommitRecord) -> None:
        """Refuse a commit while the storage has versions that the metastore doesn't know.

        Raises:
            InvalidTableStateError: (19) it has; the message says which.
        """
        if commit.version == self.version + 1:
            beyond = commit.version if self.manifests.stat(commit.final_path) else 0
        else:
            # Lance reads the storage before it commits, so it proposes the version after a direct writer's.
            beyond = self.manifests.newest() or 0
        if beyond > self.version:
            raise unknown_versions_error(self.catalog_table.id, self.manifests, beyond, self.version)

    def _final_manifest(self) -> Manifest:
        manifest = self.manifests.find(self.version)
        if manifest is None:
            raise spec_errors.InvalidTableStateError(
                f"table {self.catalog_table.id}: the metastore is at version {self.version}, but its "
                f"manifest is missing at {self.manifests.location}: it was removed, the storage was "
                "restored, or a drop of the table is running or was interrupted; compare and repair, or "
                "drop it"
            )
        return manifest


def unknown_versions_error(
    table: TableId, manifests: Manifests, stored: int, decided: int
) -> spec_errors.InvalidTableStateError:
    """Return the error for versions on the storage that the metastore doesn't know.

    Args:
        table: the table.
        manifests: its manifests.
        stored: the version on the storage.
        decided: the metastore's version, which is lower.
    """
    committed = HighWaterMark(manifests).version()
    at = f"the storage has version {stored}, but the metastore is at {decided}"
    if committed > decided:
        return spec_errors.InvalidTableStateError(
            f"table {table} was set back: {at}, though version {committed} was committed there: "
            "another client overwrote the catalog table with an older state; compare the table, "
            "then adopt the storage's versions"
        )
    return spec_errors.InvalidTableStateError(
        f"table {table} was bypassed: {at}: a direct writer committed by path; compare the table, then adopt "
        "the storage's versions or remove their manifests"
    )
