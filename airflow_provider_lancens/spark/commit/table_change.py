"""A change that a write makes to a table: the operation that commits it, and its conflicts.

The kinds of changes are in the modules of their verbs: beside this one, and in `publish`, `compute` and
`maintenance.restore`. Rows conflict, not files: rows that were rewritten or moved unchanged don't conflict.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.spark.keys import (
    Counts,
)
from airflow_provider_lancens.spark.table.column_history import (
    FieldDescription,
    described_fields,
    field_ids,
    match_columns,
)
from airflow_provider_lancens.spark.table.history import kept_version

if TYPE_CHECKING:
    import pyarrow as pa
    from lance import FragmentMetadata, LanceDataset
    from lance.fragment import LanceFragment
    from lance.schema import LanceSchema


class CommitStep(NamedTuple):
    """A Lance operation, and the version it was made for (0: no dataset yet)."""

    operation: Any
    read_version: int
    counts: Counts | None = None
    """The counts of the change, if they depend on `read_version`."""
    updated: int | None = None
    """The rows that an upsert replaces; None for other changes."""
    deleted: int | None = None
    """The rows that are removed, rather than replaced by an upsert; None if there are none."""

    def counts_with(self, written: Counts) -> Counts:
        """Return the counts of the commit, whose write has these."""
        return self.counts or replace(written, updated=self.updated, deleted=self.deleted)


RUN_AGAIN = "; nothing was committed, run it again"
"""The end of the message if a change conflicts with what others committed."""


@dataclass(frozen=True, slots=True)
class TableChange(ABC):
    """Fragments that were written while the table was at version `base`."""

    table: str
    base: int | None
    schema: pa.Schema
    fragments: Sequence[FragmentMetadata] = field(repr=False)
    written_for: LanceSchema | None = field(default=None, kw_only=True, repr=False)
    """The columns of `base` with their field ids, to which the files refer; None if there was no dataset."""

    KIND: ClassVar[str] = ""

    @property
    def kind(self) -> str:
        """The kind of the change, as recorded in its commit, for a rerun that replaces it."""
        return self.KIND

    @abstractmethod
    def apply_to(self, latest: LanceDataset | None) -> CommitStep:
        """Return the operation that applies the change to the latest version.

        Args:
            latest: the dataset at its latest version; None if there is none.

        Raises:
            ConcurrentModificationError: (14) it conflicts with a commit made since `base`.
        """

    def check_same_columns(self, latest: LanceDataset) -> None:
        """Check that the fragments have exactly the columns of the dataset, which Lance does not check.

        Raises:
            ConcurrentModificationError: (14) others changed the columns or created the dataset meanwhile.
        """
        if self.base is None or latest.version < self.base:
            raise self._conflict("another writer created its dataset")
        if latest.schema != self.schema or not self._has_columns(latest) or self._changed_fields(latest):
            raise self._conflict(f"version {latest.version} changed its columns")

    def check_columns_kept(self, latest: LanceDataset) -> None:
        """Check that the dataset still has the columns of the fragments, and no others that must be set.

        Lance doesn't check this either. A file refers to its columns by field ids. If a column was converted
        to another type or dropped meanwhile, Lance ignores the values in the file, and reads null; or it
        reads them as the values of a new column with the same id.

        Raises:
            ConcurrentModificationError: (14) others changed or dropped a column meanwhile.
        """
        required = [field.name for field in latest.schema if not field.nullable]
        if not self._has_columns(latest) or not set(required) <= set(self.schema.names):
            raise self._conflict(f"version {latest.version} changed its columns")
        if not self._are_renamed(latest, self._changed_fields(latest)):
            raise self._conflict(f"version {latest.version} gave other columns the ids of its columns")

    def _has_columns(self, latest: LanceDataset) -> bool:
        return self._written_ids <= field_ids(latest.lance_schema.fields())

    def _changed_fields(self, latest: LanceDataset) -> list[tuple[FieldDescription, FieldDescription]]:
        """Return the written fields whose ids have another name or type now, each as it was and as it is."""
        if self.written_for is None or self.written_for == latest.lance_schema:
            return []
        before, after = (
            described_fields(schema.fields()) for schema in (self.written_for, latest.lance_schema)
        )
        shared = self._written_ids & before.keys() & after.keys()
        return [(before[number], after[number]) for number in shared if before[number] != after[number]]

    def _are_renamed(
        self, latest: LanceDataset, fields: Sequence[tuple[FieldDescription, FieldDescription]]
    ) -> bool:
        """Return whether fields are unchanged but for the name of their column."""
        if not fields:
            return True
        if any((old.path[1:], old.type) != (new.path[1:], new.type) for old, new in fields):
            return False
        before = kept_version(latest, self.base or 0)
        if before is None:
            return False
        names = match_columns(before, latest).names
        return all(names.get(new.path[0]) == old.path[0] for old, new in fields)

    @property
    def _written_ids(self) -> set[int]:
        return {number for fragment in self.fragments for file in fragment.files for number in file.fields}

    def _first_version(self) -> CommitStep:
        """Return the operation that creates the dataset, which doesn't exist.

        Raises:
            ConcurrentModificationError: (14) it existed when the write began.
        """
        if self.base is not None:
            raise self._conflict("its dataset was removed")
        return self._overwrite_step(0)

    def _overwrite_step(self, read_version: int) -> CommitStep:
        from lance import LanceOperation

        return CommitStep(LanceOperation.Overwrite(self.schema, list(self.fragments)), read_version)

    def _conflict(self, what: str) -> spec_errors.ConcurrentModificationError:
        since = "without a dataset" if self.base is None else f"version {self.base}"
        return spec_errors.ConcurrentModificationError(
            f"table {self.table}: {what} since this write began ({since}){RUN_AGAIN}"
        )


@dataclass(frozen=True, slots=True)
class RowDeletions:
    """Fragments without some of their rows, and fragments that have no rows left."""

    updated: list[FragmentMetadata]
    removed: list[int]
    """Ids of the fragments without rows."""
    rows: int = 0
    """The number of deleted rows."""

    @classmethod
    def where(cls, dataset: LanceDataset, condition: str) -> Self:
        """Delete the rows that match a condition; nothing refers to the deletion files before a commit.

        Args:
            dataset: the dataset, at the version to commit onto.
            condition: in Lance's SQL, as it is rendered of a parsed condition.
        """
        found = [(fragment, fragment.delete(condition)) for fragment in dataset.get_fragments()]
        changed = [(before, after) for before, after in found if _deleted_rows(before, after)]
        return cls(
            updated=[after for _, after in changed if after is not None],
            removed=[before.fragment_id for before, after in changed if after is None],
            rows=sum(_deleted_rows(before, after) for before, after in changed),
        )

    @property
    def fragments(self) -> int:
        """The number of fragments that contained the rows."""
        return len(self.updated) + len(self.removed)


def _deleted_rows(before: LanceFragment, after: FragmentMetadata | None) -> int:
    rows: int = before.metadata.num_rows
    return rows - (0 if after is None else after.num_rows)
