"""Replace the rows of an earlier commit under the same key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.spark.commit.row_deletions import RowDeletions
from airflow_provider_lancens.spark.commit.table_changes import CommitStep, Overwrite, TableChange
from airflow_provider_lancens.spark.keys import KeyedCommit
from airflow_provider_lancens.spark.table.history import COMPUTED_FILES, data_changed, read_transaction

if TYPE_CHECKING:
    from lance import LanceDataset

_ADVICE = "delete those rows and write the new ones under another key, or overwrite the table"


@dataclass(frozen=True, slots=True)
class AppendedRows:
    """The rows that a commit appended."""

    version: int
    rows: int
    files: frozenset[str] | None
    """Their data files; None if the version was cleaned up."""

    def are_in(self, dataset: LanceDataset) -> bool:
        """Return whether a dataset has all of these rows, unchanged, and they can be identified."""
        return self._own_fragments(dataset) is not None or self._have_versions(dataset)

    def removed_from(self, dataset: LanceDataset) -> RowDeletions | None:
        """Return the dataset's fragments without these rows; None if it doesn't have all of them."""
        fragments = self._own_fragments(dataset)
        if fragments is not None:
            return RowDeletions([], fragments)
        return RowDeletions.where(dataset, self._condition) if self._have_versions(dataset) else None

    def _own_fragments(self, dataset: LanceDataset) -> list[int] | None:
        return None if self.files is None else _fragments_of(dataset, self.files)

    def _have_versions(self, dataset: LanceDataset) -> bool:
        # A compaction mixes them with other rows. If row ids are stable, each keeps the version it came with.
        return bool(dataset.has_stable_row_ids) and dataset.count_rows(self._condition) == self.rows

    @property
    def _condition(self) -> str:
        return f"_row_created_at_version = {self.version} AND _row_last_updated_at_version = {self.version}"


@dataclass(frozen=True, slots=True)
class Replacement(TableChange):
    """Remove the rows of an earlier append, and add fragments, in one commit."""

    replaced: AppendedRows

    def apply_to(self, latest: LanceDataset | None) -> CommitStep:
        """See `TableChange.apply_to`: other rows that were appended or removed meanwhile aren't affected."""
        from lance import LanceOperation

        rest = None if latest is None else self.replaced.removed_from(latest)
        if latest is None or rest is None:
            raise self._conflict("the rows to replace were changed")
        self.check_same_columns(latest)
        operation = LanceOperation.Update(
            removed_fragment_ids=rest.removed,
            updated_fragments=rest.updated,
            new_fragments=list(self.fragments),
        )
        return CommitStep(operation, latest.version)


def replacing(
    mode: str, dataset: LanceDataset, commit: KeyedCommit, table: str
) -> Callable[..., TableChange]:
    """Return the kind of change that replaces what a commit in this mode wrote.

    Raises:
        InvalidInputError: (13) the commit cannot be undone without affecting changes of other writers.
    """
    if mode == "append":
        return partial(Replacement, replaced=_appended_rows(dataset, commit, table))
    _check_only_maintained(dataset, commit, table)
    return Overwrite


def _appended_rows(dataset: LanceDataset, commit: KeyedCommit, table: str) -> AppendedRows:
    """Return what a commit appended, if all of it is unchanged.

    Raises:
        InvalidInputError: (13) the rows can no longer be identified, or some were changed since.
    """
    transaction = read_transaction(dataset, commit.version)
    if transaction is None:
        rows = AppendedRows(commit.version, commit.counts.rows, None)
    else:
        added = _added(transaction.operation)
        files = frozenset(file.path for fragment in added for file in fragment.files)
        rows = AppendedRows(commit.version, sum(fragment.physical_rows for fragment in added), files)
    if rows.are_in(dataset):
        return rows
    if transaction is None:
        problem = f"cannot identify the rows of version {commit.version}, which was cleaned up"
    else:
        problem = (
            f"cannot undo version {commit.version}: its rows were deleted or changed since, or compacted"
        )
        problem += "" if dataset.has_stable_row_ids else " without stable row ids"
    raise spec_errors.InvalidInputError(f"table {table}: on_existing_key: {problem}; {_ADVICE}")


def _check_only_maintained(dataset: LanceDataset, commit: KeyedCommit, table: str) -> None:
    """Check that no rows were changed since a commit that overwrote the table.

    Raises:
        InvalidInputError: (13) others have changed rows since, or that cannot be determined any more.
    """
    if data_changed(dataset, since=commit.version):
        raise spec_errors.InvalidInputError(
            f"table {table}: on_existing_key: cannot replace version {commit.version}, an "
            "overwrite: other writers have changed rows since, which would be lost; use "
            "on_existing_key='write_again' if that is intended"
        )


def _added(operation: Any) -> list[Any]:
    """Return the fragments that an append, the first write of a dataset, or a replacement added."""
    kind = "new_fragments" if hasattr(operation, "new_fragments") else "fragments"
    return list(getattr(operation, kind))


def _fragments_of(dataset: LanceDataset, files: frozenset[str]) -> list[int] | None:
    """Return the ids of the fragments with these files; None if a file or a row of them was removed.

    Files with columns that were computed since are no reason: they go with their rows.
    """
    found: list[int] = []
    missing = set(files)
    for fragment in dataset.get_fragments():
        paths = {file.path for file in fragment.metadata.files}
        if not paths & files:
            continue
        others = {path for path in paths - files if not path.startswith(COMPUTED_FILES)}
        if others or fragment.metadata.deletion_file is not None:
            return None
        found.append(fragment.fragment_id)
        missing -= paths
    return None if missing else found
