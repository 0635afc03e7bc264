"""Comparing a managed table with its storage, repairing it, and converting between the two kinds."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Literal

from lance_namespace.errors import ConcurrentModificationError, InvalidInputError, InvalidTableStateError

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace import marks
from airflow_provider_lancens.namespace.managed import ManagedVersions
from airflow_provider_lancens.namespace.metastore import Change, Expectation, Table
from airflow_provider_lancens.namespace.operations.versions import VersionOperations

Verdict = Literal["consistent", "storage_ahead", "metastore_ahead", "diverged", "no_version"]
CONSISTENT: Verdict = "consistent"
STORAGE_AHEAD: Verdict = "storage_ahead"
METASTORE_AHEAD: Verdict = "metastore_ahead"
DIVERGED: Verdict = "diverged"
NO_VERSION: Verdict = "no_version"


@dataclass(frozen=True, slots=True)
class Comparison:
    """How a managed table and its storage stand."""

    table: str
    metastore_version: int
    storage_version: int
    """The newest one with its final name; 0 where there is none."""
    verdict: Verdict

    @property
    def words(self) -> str:
        """What it means, and what to do."""
        at = f"table {self.table}: metastore at {self.metastore_version}, storage at {self.storage_version}"
        return {
            CONSISTENT: f"{at}: consistent",
            STORAGE_AHEAD: f"{at}: a writer committed by path; adopt its versions, or remove their manifests",
            METASTORE_AHEAD: f"{at}: the newest manifest is gone; restore it, or adopt the storage's version",
            DIVERGED: f"{at}: a writer by path made another version {self.metastore_version} than was "
            "committed here; remove its manifests from there on, or adopt them and abandon ours",
            NO_VERSION: f"{at}: its entry holds no number as {marks.VERSION!r}; adopt the storage's version",
        }[self.verdict]


@dataclass(frozen=True, slots=True)
class RepairOperations:
    """Compare, adopt, convert."""

    versions: VersionOperations

    def compare(self, table: TableId) -> Comparison:
        """Compare, after finishing what a commit left undone; 13 where the storage decides."""
        return self._compared_entry(table)[1]

    def compared(self, entry: Table) -> Comparison:
        """The same for an entry that was read; the table may have moved since."""
        marks.check_managed(entry)
        comparison = self._at_one_look(entry)
        return comparison if comparison.verdict == CONSISTENT else self.compare(entry.id)

    def adopt(self, table: TableId, *, abandon: bool = False) -> Comparison:
        """Move the metastore to the storage's newest version, by compare-and-set.

        Args:
            table: a managed table.
            abandon: allow it also where that gives up a version that was committed through the metastore.

        Returns:
            How it stood before; nothing was changed where that was consistent.

        Raises:
            InvalidTableStateError: (19) metastore and storage went separate ways, and `abandon` is false.
            ConcurrentModificationError: (14) the table moved meanwhile.
        """
        entry, before = self._compared_entry(table)
        if before.verdict == DIVERGED and not abandon:
            raise InvalidTableStateError(before.words)
        if before.verdict != CONSISTENT:
            self._move(entry, before)
        return before

    def convert(self, table: TableId, managed_by: str) -> bool:
        """Hand a table's version to the metastore (``impl``) or back to the storage (``storage``).

        Returns:
            False where it was so already.

        Raises:
            InvalidInputError: (13) `managed_by` is neither.
            UnsupportedOperationError: (0) the metastore can't compare-and-set.
            InvalidTableStateError: (19) handing it back would show other versions than now.
            ConcurrentModificationError: (14) somebody else changed the table at the same time.
        """
        if managed_by == marks.BY_STORAGE:
            return self._to_storage(table)
        if managed_by != marks.BY_IMPLEMENTATION:
            allowed = f"{marks.BY_IMPLEMENTATION!r} or {marks.BY_STORAGE!r}"
            raise InvalidInputError(f"{marks.MANAGED_BY}: expected {allowed}, got {managed_by!r}")
        return self._to_implementation(table)

    def _compared_entry(self, table: TableId) -> tuple[Table, Comparison]:
        entry = self.versions.tables.get(table)
        while True:
            marks.check_managed(entry)
            comparison = self._at_one_look(entry)
            if comparison.verdict == CONSISTENT:
                return entry, comparison
            # Commits go on meanwhile: only an entry that hasn't moved since disagrees with its storage.
            before, entry = entry, self.versions.tables.get(table)
            if entry == before:
                return entry, comparison

    def _at_one_look(self, entry: Table) -> Comparison:
        managed = self.versions.managed(entry)
        if not marks.has_version(entry):
            return Comparison(str(entry.id), 0, managed.manifests.newest() or 0, NO_VERSION)
        verdict = _own_verdict(managed)  # first, since it finishes a commit that stopped halfway
        newest = managed.manifests.newest() or 0
        if newest > managed.version and verdict != DIVERGED:
            verdict = STORAGE_AHEAD
        return Comparison(str(entry.id), managed.version, newest, verdict)

    def _move(self, entry: Table, before: Comparison) -> None:
        if before.verdict != DIVERGED and marks.has_version(entry):
            self.versions.managed(entry).finish()  # its record goes
        change = Change(
            {marks.VERSION: str(before.storage_version)},
            remove=(marks.COMMIT,),
            # No server compares a parameter that isn't there; the other one is the next best.
            expect=_still_as(entry, marks.VERSION) or _still_as(entry, marks.MANAGED_BY),
        )
        self.versions.tables.metastore.update_table(
            entry.id, lambda now: self._unless_moved(entry, now, change)
        )

    def _unless_moved(self, entry: Table, now: Table, change: Change) -> Change:
        keys = (marks.MANAGED_BY, marks.VERSION, marks.COMMIT)
        if any(entry.parameters.get(key) != now.parameters.get(key) for key in keys):
            raise ConcurrentModificationError(
                f"table {entry.id}: it moved while it was compared; compare again"
            )
        return change

    def _to_implementation(self, table: TableId) -> bool:
        metastore = self.versions.tables.metastore
        metastore.require_compare_and_set(table.namespace)
        converted: list[bool] = []

        def decide(entry: Table) -> Change | None:
            marks.check_lance(entry)
            converted[:] = [not marks.is_managed(entry)]
            return self._taken_over(entry) if converted[0] else None

        metastore.update_table(table, decide)
        if converted[0]:
            # A writer by path may have committed between our look and the change; if the table has moved
            # again, that was through the metastore.
            with contextlib.suppress(ConcurrentModificationError):
                self.adopt(table)
        return converted[0]

    def _taken_over(self, entry: Table) -> Change:
        newest = self.versions.manifests(entry).newest() or 0
        return Change(
            {marks.MANAGED_BY: marks.BY_IMPLEMENTATION, marks.VERSION: str(newest)},
            remove=(marks.COMMIT,),
            expect=_still_as(entry, marks.MANAGED_BY),
        )

    def _to_storage(self, table: TableId) -> bool:
        converted: list[bool] = []

        def decide(entry: Table) -> Change | None:
            marks.check_lance(entry)
            converted[:] = [marks.is_managed(entry)]
            return self._handed_back(entry) if converted[0] else None

        self.versions.tables.metastore.update_table(table, decide)
        return converted[0]

    def _handed_back(self, entry: Table) -> Change:
        comparison = self.compared(entry)
        if comparison.verdict != CONSISTENT:
            raise InvalidTableStateError(comparison.words)
        managed = self.versions.managed(entry)
        managed.finish()
        # The same number in another spelling, which no commit that is under way expects: else one that comes
        # late would write its whole entry back, and the table were managed again.
        spelled = f"0{managed.version}"
        return managed.move({marks.MANAGED_BY: marks.BY_STORAGE, marks.VERSION: spelled})


def _own_verdict(managed: ManagedVersions) -> Verdict:
    if not managed.version:
        return CONSISTENT
    try:
        managed.committed()
    except InvalidTableStateError:
        return METASTORE_AHEAD
    return DIVERGED if managed.is_diverged() else CONSISTENT


def _still_as(entry: Table, key: str) -> Expectation | None:
    value = entry.parameters.get(key)
    return None if value is None else Expectation(key, value)
