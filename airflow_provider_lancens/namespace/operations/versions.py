"""Versions of a table: create, describe, list, advance (specification: implementation-managed tables)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from lance_namespace.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    InvalidTableStateError,
    TableVersionNotFoundError,
)

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace import marks
from airflow_provider_lancens.namespace.commits import Commit
from airflow_provider_lancens.namespace.managed import ManagedVersions
from airflow_provider_lancens.namespace.manifests import Manifest, Manifests
from airflow_provider_lancens.namespace.metastore import Change, Table
from airflow_provider_lancens.namespace.operations.commits import CommitAttempt
from airflow_provider_lancens.namespace.operations.tables import TableOperations, location_of
from airflow_provider_lancens.namespace.writes import Write

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class VersionOperations:
    """Operations on the versions of tables, over any metastore."""

    tables: TableOperations

    def create(self, table: TableId, commit: Commit, write: Write | None = None) -> Manifest:
        """Make a staged manifest the next version of a managed table; see `CommitAttempt`."""
        return CommitAttempt(self.tables.metastore, table, commit, self.managed, write).make()

    def describe(self, table: TableId, version: int) -> Manifest:
        """One version; 11 where there is none, 19 where metastore and storage disagree."""
        return self._looked_at(table, lambda entry: self.found(entry, version))

    def found(self, entry: Table, version: int) -> Manifest:
        """One version of an entry that was read; 11, 19."""
        if marks.is_managed(entry):
            return self.managed(entry).at(version)
        found = self.manifests(entry).find(version)
        if found is None:
            raise TableVersionNotFoundError(f"table {entry.id} has no version {version}")
        return found

    def newest(self, table: TableId) -> Manifest | None:
        """The newest version; None where no data set was written yet; 19."""
        return self._looked_at(table, self._newest)

    def all(self, table: TableId) -> Mapping[int, Manifest]:
        """Every version; 19."""
        return self._looked_at(
            table, lambda entry: (self.managed if marks.is_managed(entry) else self.manifests)(entry).all()
        )

    def answered(self, entry: Table, asked: int | None) -> int | None:
        """The version that a description answers: the metastore's where it decides, else the asked one.

        Raises:
            TableVersionNotFoundError: (11) the asked version isn't there.
        """
        latest = marks.managed_version(entry) if marks.is_managed(entry) else None
        if asked is None or asked == latest:
            return latest
        return self.found(entry, asked).version

    def advance(self, table: TableId, expected: int, new: int) -> bool:
        """Move a managed table's version, for writers that made `new` without this namespace.

        Args:
            table: an implementation-managed table.
            expected: the version that it must be at.
            new: the version that it is to be at; its manifest must lie on the storage.

        Returns:
            False where it was at `new` already: the same request again.

        Raises:
            ConcurrentModificationError: (14) it is at neither.
            TableVersionNotFoundError: (11) `new` isn't on the storage.
            InvalidInputError: (13) the table isn't managed by the implementation, or `new` isn't newer.
            InvalidTableStateError: (19) a writer by path has made another version `expected`.
        """
        if new <= expected:
            raise InvalidInputError(f"new: expected a version above {expected}, got {new}")
        moved: list[bool] = []

        def decide(entry: Table) -> Change | None:
            marks.check_managed(entry)
            moved[:] = [marks.managed_version(entry) != new]
            return self._advanced(entry, expected, new) if moved[0] else None

        self.tables.metastore.update_table(table, decide)
        return moved[0]

    def managed(self, entry: Table) -> ManagedVersions:
        """The versions of a managed entry."""
        return ManagedVersions(entry, self.manifests(entry))

    def manifests(self, entry: Table) -> Manifests:
        """The manifests at an entry's location."""
        return Manifests(location_of(entry), self.tables.config.storage_options)

    def _advanced(self, entry: Table, expected: int, new: int) -> Change:
        managed = self.managed(entry)
        if managed.version != expected:
            raise ConcurrentModificationError(
                f"table {entry.id}: it is at version {managed.version}, expected {expected}"
            )
        managed.finish()  # `new` may be built on what lies on the storage
        if managed.manifests.find(new) is None:
            raise TableVersionNotFoundError(
                f"table {entry.id}: no manifest of version {new} at {location_of(entry)}; write it first"
            )
        return managed.move({marks.VERSION: str(new)})

    def _newest(self, entry: Table) -> Manifest | None:
        if marks.is_managed(entry):
            return self.managed(entry).newest()
        manifests = self.manifests(entry)
        version = manifests.newest()
        return manifests.find(version) if version else None

    def _looked_at(self, table: TableId, look: Callable[[Table], Found]) -> Found:
        entry = self.tables.get(table)
        while True:
            try:
                return look(entry)
            except InvalidTableStateError:
                # The table may have moved, or gone, between our look at the entry and that at the storage.
                before, entry = entry, self.tables.get(table)
                if entry == before:
                    raise
