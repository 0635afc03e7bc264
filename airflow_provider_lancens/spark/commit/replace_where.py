"""Replace the rows that match a condition by new ones that match it too, in one commit."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_lancens.spark.commit.row_deletions import RowDeletions
from airflow_provider_lancens.spark.commit.table_changes import CommitStep, TableChange
from airflow_provider_lancens.spark.keys import REPLACE_WHERE
from airflow_provider_lancens.spark.table.history import data_changed
from airflow_provider_lancens.spark.table.row_difference import changed_rows

if TYPE_CHECKING:
    from lance import LanceDataset

_DIGITS = 16


@dataclass(frozen=True, slots=True)
class ReplaceWhere(TableChange):
    """Delete the rows that match a condition at commit time, and add the fragments."""

    condition: str
    """In Lance's SQL, as it is rendered of a parsed condition."""

    @property
    def kind(self) -> str:
        """See `TableChange.kind`: with a digest of the condition, by which replacements are compared."""
        return replace_where_kind(self.condition)

    def apply_to(self, latest: LanceDataset | None) -> CommitStep:
        """See `TableChange.apply_to`: commits of others conflict only if they wrote rows that match."""
        from lance import LanceOperation

        if latest is None:
            return self._first_version()
        self.check_same_columns(latest)
        if self.base is not None and data_changed(latest, self.base):
            self._check_no_new_rows(latest, self.base)
        replaced = RowDeletions.where(latest, self.condition)
        operation = LanceOperation.Update(
            removed_fragment_ids=replaced.removed,
            updated_fragments=replaced.updated,
            new_fragments=list(self.fragments),
        )
        return CommitStep(operation, latest.version)

    def _check_no_new_rows(self, latest: LanceDataset, base: int) -> None:
        """Check that others have written no row that matches since the write began.

        A restore that brings such a row back writes it, too. A row that others rewrote as it is wasn't
        written.

        Raises:
            ConcurrentModificationError: (14) there is one, whose rows this commit would delete.
        """
        changed = changed_rows(latest, base, [], self.condition)
        if changed is None:
            raise self._conflict(f"version {base} was cleaned up")
        written, _ = changed.count_differing(changed.written, changed.deleted)
        if written:
            raise self._conflict(f"other writers wrote rows where {self.condition}")


def replace_where_kind(condition: str) -> str:
    """Return the kind of a replacement of the rows that match a condition, in Lance's SQL."""
    return f"{REPLACE_WHERE}/{hashlib.sha256(condition.encode()).hexdigest()[:_DIGITS]}"
