"""Comparison of a managed table with its storage, repair, and change of the version authority."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import Literal

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.formatting import format_examples
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace import table_properties
from airflow_provider_lancens.namespace.managed.high_water_mark import HighWaterMark
from airflow_provider_lancens.namespace.managed.managed_versions import ManagedVersions
from airflow_provider_lancens.namespace.metastore_protocol import CatalogTable, Expectation, ParameterChange
from airflow_provider_lancens.namespace.operations.authority_change import AuthorityChange
from airflow_provider_lancens.namespace.operations.version_operations import VersionOperations
from airflow_provider_lancens.namespace.storage.missing_files import StoredVersions, is_of_index
from airflow_provider_lancens.namespace.storage.write_leases import gates_of, open_gates

Verdict = Literal[
    "consistent",
    "storage_ahead",
    "metastore_reverted",
    "metastore_ahead",
    "diverged",
    "no_version",
    "files_missing",
]
CONSISTENT: Verdict = "consistent"
STORAGE_AHEAD: Verdict = "storage_ahead"
METASTORE_REVERTED: Verdict = "metastore_reverted"
METASTORE_AHEAD: Verdict = "metastore_ahead"
DIVERGED: Verdict = "diverged"
NO_VERSION: Verdict = "no_version"
FILES_MISSING: Verdict = "files_missing"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Comparison of a table with its storage."""

    table: TableId
    metastore_version: int
    """Equals `storage_version` if the storage is the version authority."""
    storage_version: int
    """Newest version with its final name; 0 if there is none."""
    verdict: Verdict
    committed_version: int = 0
    """Newest version that was committed through the metastore, if it was set back; else 0."""
    missing_files: tuple[str, ...] = ()
    """Missing files that the newest version refers to, relative to the table's location."""
    complete_version: int | None = None
    """If files are missing, the newest version without missing files."""

    @property
    def explanation(self) -> str:
        """Human-readable explanation, with what to do."""
        at = f"table {self.table}: metastore at {self.metastore_version}, storage at {self.storage_version}"
        return {
            CONSISTENT: f"{at}: consistent",
            STORAGE_AHEAD: f"{at}: a direct writer committed; adopt its versions, or remove their manifests",
            METASTORE_REVERTED: f"{at}: another client overwrote the catalog table with an older state, "
            f"though version {self.committed_version} was committed; adopt the storage's versions"
            f"{self._above}",
            METASTORE_AHEAD: f"{at}: the newest manifest is missing; restore it, "
            "or adopt the storage's version",
            DIVERGED: f"{at}: a direct writer wrote a different version {self.metastore_version} than the "
            "one committed here; remove its manifests from that version on, or adopt them and abandon the "
            "committed ones",
            NO_VERSION: f"{at}: the parameter {table_properties.VERSION!r} of its catalog table is not a "
            "number; adopt the storage's version",
            FILES_MISSING: f"{at}: {self._missing}",
        }[self.verdict]

    @property
    def lacks_indices_alone(self) -> bool:
        """Whether files are missing, and all of them are of indices."""
        return bool(self.missing_files) and all(map(is_of_index, self.missing_files))

    @property
    def _above(self) -> str:
        direct = self.storage_version > self.committed_version
        return f"; those above {self.committed_version} are a direct writer's" if direct else ""

    @property
    def _missing(self) -> str:
        if self.verdict != FILES_MISSING:
            return ""
        lacking = f"it refers to files that were removed, such as {format_examples(self.missing_files)}"
        if self.lacks_indices_alone:
            return f"{lacking}; only indices are lost, and no row: build them again, with if_exists='replace'"
        if self.complete_version is None:
            return f"{lacking}; no older version is complete, write the table again"
        return f"{lacking}; restore version {self.complete_version}, then repeat the later writes"


@dataclass(frozen=True, slots=True)
class RepairOperations:
    """Compare, adopt and convert operations over any metastore."""

    versions: VersionOperations

    def compare(self, table: TableId) -> Comparison:
        """Compare, after finishing an interrupted commit; also check the newest version's files."""
        catalog_table = self.versions.tables.get(table)
        if table_properties.is_managed(catalog_table):
            catalog_table, comparison = self._compare_settled(catalog_table)
        else:
            table_properties.check_lance(catalog_table)
            newest = self.versions.manifests(catalog_table).newest() or 0
            comparison = Comparison(catalog_table.id, newest, newest, CONSISTENT)
        return self._check_files(catalog_table, comparison)

    def compare_catalog_table(self, catalog_table: CatalogTable) -> Comparison:
        """Compare a catalog table that was read and may have changed since, without its files."""
        return self._compare_settled(catalog_table)[1]

    def adopt(self, table: TableId, *, abandon: bool = False) -> Comparison:
        """Move the metastore to the storage's newest version, by compare-and-set.

        Args:
            table: a managed table.
            abandon: allow it even if that abandons a version that was committed through the metastore.

        Returns:
            The comparison before; nothing was changed if that was consistent.

        Raises:
            InvalidTableStateError: (19) metastore and storage diverged, and `abandon` is false; or files of
                the storage's newest version are missing.
            ConcurrentModificationError: (14) the table was changed meanwhile.
        """
        catalog_table, before = self._adopt(table, abandon=abandon)
        return self._check_files(catalog_table, before)

    def convert(self, table: TableId, managed_by: str) -> bool:
        """Make the metastore (``impl``) or the storage (``storage``) a table's version authority.

        Returns:
            False if it already was.

        Raises:
            InvalidInputError: (13) `managed_by` is neither.
            UnsupportedOperationError: (0) the metastore can't compare-and-set.
            InvalidTableStateError: (19) the storage's versions differ from the metastore's.
            ConcurrentModificationError: (14) a write is running, or the table was changed concurrently.
        """
        if managed_by == table_properties.BY_STORAGE:
            return self._to_storage(table)
        if managed_by != table_properties.BY_IMPLEMENTATION:
            allowed = f"{table_properties.BY_IMPLEMENTATION!r} or {table_properties.BY_STORAGE!r}"
            raise spec_errors.InvalidInputError(
                f"{table_properties.MANAGED_BY}: expected {allowed}, got {managed_by!r}"
            )
        return self._to_implementation(table)

    def _adopt(self, table: TableId, *, abandon: bool = False) -> tuple[CatalogTable, Comparison]:
        catalog_table, before = self._compare_settled(self.versions.tables.get(table))
        if before.verdict == DIVERGED and not abandon:
            raise spec_errors.InvalidTableStateError(before.explanation)
        if before.verdict != CONSISTENT:
            self._check_whole(catalog_table, before)
            self._move(catalog_table, before)
        return catalog_table, before

    def _check_whole(self, catalog_table: CatalogTable, before: Comparison) -> None:
        """Refuse to adopt a version whose files are missing."""
        newest = before.storage_version
        if not newest:
            return
        versions = self._stored_versions(catalog_table)
        try:
            missing = versions.missing_files(newest)
        except spec_errors.TableVersionNotFoundError as error:
            raise _changed(catalog_table) from error
        if not missing:
            return
        whole = versions.newest_complete(below=newest)
        advice = (
            "no older version is whole: drop the table, and write it again"
            if whole is None
            else f"version {whole} is the newest whole one: remove the manifests above it, then adopt it"
        )
        raise spec_errors.InvalidTableStateError(
            f"table {catalog_table.id}: version {newest} of the storage was not adopted, since it refers to "
            f"files that are missing, such as {format_examples(missing)}; {advice}"
        )

    def _stored_versions(self, catalog_table: CatalogTable) -> StoredVersions:
        location = self.versions.tables.location_of(catalog_table)
        config = self.versions.tables.config
        return StoredVersions(location, config.storage_options, config.allowed)

    def _check_files(self, catalog_table: CatalogTable, comparison: Comparison) -> Comparison:
        newest = comparison.storage_version
        if comparison.verdict != CONSISTENT or not newest:
            return comparison
        versions = self._stored_versions(catalog_table)
        try:
            missing = versions.missing_files(newest)
        except spec_errors.TableVersionNotFoundError:  # cleaned up after other commits: compare again
            return self.compare(catalog_table.id)
        if not missing:
            return comparison
        whole = versions.newest_complete(below=newest)
        return replace(comparison, verdict=FILES_MISSING, missing_files=missing, complete_version=whole)

    def _compare_settled(self, catalog_table: CatalogTable) -> tuple[CatalogTable, Comparison]:
        table_properties.check_managed(catalog_table)
        while True:
            comparison = self._compare_once(catalog_table)
            if comparison.verdict == CONSISTENT:
                return catalog_table, comparison
            # Others may have committed between the two reads; compare again until the entry stays the same.
            before, catalog_table = catalog_table, self.versions.tables.get(catalog_table.id)
            if catalog_table == before:
                return catalog_table, comparison
            if not table_properties.is_managed(catalog_table):
                raise _changed(before)

    def _compare_once(self, catalog_table: CatalogTable) -> Comparison:
        managed = self.versions.managed(catalog_table)
        if not table_properties.has_version(catalog_table):
            return Comparison(catalog_table.id, 0, managed.manifests.newest() or 0, NO_VERSION)
        verdict = _verdict_of_commit(managed)  # also finishes an interrupted commit, so it comes first
        newest = managed.manifests.newest() or 0
        if newest <= managed.version or verdict == DIVERGED:
            return Comparison(catalog_table.id, managed.version, newest, verdict)
        committed = HighWaterMark(managed.manifests).version()
        if committed > managed.version:
            return Comparison(catalog_table.id, managed.version, newest, METASTORE_REVERTED, committed)
        return Comparison(catalog_table.id, managed.version, newest, STORAGE_AHEAD)

    def _move(self, catalog_table: CatalogTable, before: Comparison) -> None:
        if before.verdict != DIVERGED and table_properties.has_version(catalog_table):
            self.versions.managed(catalog_table).finish()  # before the commit record is removed below
        adopted = str(before.storage_version)
        parameters = catalog_table.parameters
        change = ParameterChange(
            {table_properties.VERSION: adopted, table_properties.STATE: table_properties.new_state(adopted)},
            remove=(table_properties.COMMIT,),
            # Servers can't compare a missing parameter, so `managed_by` is compared instead.
            expect=table_properties.unchanged(catalog_table)
            or Expectation(table_properties.MANAGED_BY, parameters[table_properties.MANAGED_BY]),
        )
        self.versions.tables.metastore.update_table(
            catalog_table.id, lambda now: self._if_unmoved(catalog_table, now, change)
        )
        HighWaterMark(self.versions.manifests(catalog_table)).move_to(before.storage_version)

    def _if_unmoved(
        self, catalog_table: CatalogTable, now: CatalogTable, change: ParameterChange
    ) -> ParameterChange:
        keys = (
            table_properties.MANAGED_BY,
            table_properties.VERSION,
            table_properties.COMMIT,
            table_properties.STATE,
        )
        if any(catalog_table.parameters.get(key) != now.parameters.get(key) for key in keys):
            raise _changed(catalog_table)
        return change

    def settle(self, table: TableId) -> bool:
        """End a conversion that died; see `AuthorityChange.settle`."""
        return AuthorityChange(self.versions.tables).settle(table)

    def _to_implementation(self, table: TableId) -> bool:
        if not AuthorityChange(self.versions.tables).give_to_metastore(table):
            return False
        # A direct writer, who has no lease, may have committed in between; if the table has changed again,
        # that was through the metastore.
        with contextlib.suppress(spec_errors.ConcurrentModificationError):
            self._adopt(table)
        return True

    def _to_storage(self, table: TableId) -> bool:
        def decide(catalog_table: CatalogTable) -> ParameterChange | None:
            table_properties.check_lance(catalog_table)
            return (
                self._change_to_storage(catalog_table) if table_properties.is_managed(catalog_table) else None
            )

        gates = gates_of(self.versions.manifests(self.versions.tables.get(table)))
        update = self.versions.tables.metastore.update_table(table, decide)
        if update.changed:
            open_gates(self.versions.manifests(update.table), gates)
        else:
            self.settle(table)  # an earlier conversion may have been interrupted here
        return update.changed

    def _change_to_storage(self, catalog_table: CatalogTable) -> ParameterChange:
        comparison = self.compare_catalog_table(catalog_table)
        if comparison.verdict != CONSISTENT:
            raise spec_errors.InvalidTableStateError(comparison.explanation)
        managed = self.versions.managed(catalog_table)
        managed.finish()
        # The same number in another spelling, which doesn't meet the expectation of a pending commit: a late
        # commit would write back all parameters, and the table would be managed again.
        spelled = f"0{managed.version}"
        return managed.move(
            {table_properties.MANAGED_BY: table_properties.BY_STORAGE, table_properties.VERSION: spelled}
        )


def _verdict_of_commit(managed: ManagedVersions) -> Verdict:
    if not managed.version:
        return CONSISTENT
    try:
        managed.committed()
    except spec_errors.InvalidTableStateError:
        return METASTORE_AHEAD
    return DIVERGED if managed.is_diverged() else CONSISTENT


def _changed(catalog_table: CatalogTable) -> spec_errors.ConcurrentModificationError:
    return spec_errors.ConcurrentModificationError(
        f"table {catalog_table.id}: it changed during the comparison; compare again"
    )
