"""Redo: a commit in place of earlier commits under the same key, or the reason why it isn't possible.

The rows of an append are found by their data files; after a compaction, by the versions of their rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.system_columns import CREATED_AT_VERSION, ROW_ID, UPDATED_AT_VERSION
from airflow_provider_lancens.spark.commit.append_overwrite import OverwriteCommit, replace_where_kind
from airflow_provider_lancens.spark.commit.table_change import CommitStep, RowDeletions, TableChange
from airflow_provider_lancens.spark.keys import (
    APPEND,
    DELETION,
    OVERWRITE,
    REDONE_APPEND,
    REPLACE_VALUES,
    REPLACE_WHERE,
    RESTORE,
    UPSERT,
    KeyedCommit,
)
from airflow_provider_lancens.spark.table.history import (
    COMPUTED_FILES,
    added_fragments,
    data_changed,
    read_transaction,
)

if TYPE_CHECKING:
    from lance import LanceDataset


_KINDS = {
    "Append": APPEND,
    "Overwrite": OVERWRITE,
    "Update": REDONE_APPEND,
    "Delete": DELETION,
    "Restore": RESTORE,
}
"""Kinds of commits by their operations, for commits that don't record their kind."""
_DID = {
    APPEND: ("appended rows", "so they would be left, or those of others lost"),
    REDONE_APPEND: ("replaced rows of an append", "so its rows would be left, or those of others lost"),
    OVERWRITE: ("overwrote the table", "since the rows that it replaced no longer exist"),
    UPSERT: ("was an upsert", "since the rows that it replaced no longer exist"),
    REPLACE_VALUES: ("replaced the rows with the same values", "since they no longer exist"),
    REPLACE_WHERE: ("replaced the rows that match a condition", "since they no longer exist"),
    DELETION: ("deleted rows", "since they no longer exist"),
    RESTORE: ("restored an older version", "since that can only be undone by another restore"),
}
"""What a commit of each kind did, and why it isn't replaced."""
_ADVICE = (
    "nothing was written. Load such rows by an overwrite with where, which can always be made again; or use "
    "on_existing_key='skip' to keep what the key has written, or 'write_again' to add the rows once more"
)


@dataclass(frozen=True, slots=True)
class AppendedRows:
    """The rows that a commit appended."""

    version: int
    rows: int
    files: frozenset[str] | None
    """The data files of these rows; None if the version was cleaned up."""

    def are_in(self, dataset: LanceDataset) -> bool:
        """Return whether a dataset has all of these rows, unchanged, and they can be identified."""
        return self.own_fragments(dataset) is not None or self.have_versions(dataset)

    def removed_from(self, dataset: LanceDataset) -> RowDeletions | None:
        """Return the dataset's fragments without these rows; None if it doesn't have all of them."""
        fragments = self.own_fragments(dataset)
        if fragments is not None:
            return RowDeletions([], fragments)
        return RowDeletions.where(dataset, self.condition) if self.have_versions(dataset) else None

    def own_fragments(self, dataset: LanceDataset) -> list[int] | None:
        """Return the fragments that have exactly these rows; None if there are none such."""
        return None if self.files is None else _fragments_of(dataset, self.files)

    def have_versions(self, dataset: LanceDataset) -> bool:
        """Return whether the rows of the dataset say that they are all of them, unchanged."""
        # A compaction mixes the rows with others; with stable row ids, each row keeps its created version.
        return bool(dataset.has_stable_row_ids) and dataset.count_rows(self.condition) == self.rows

    @property
    def condition(self) -> str:
        """The condition that they match then."""
        condition = f"{CREATED_AT_VERSION} = {self.version} AND {UPDATED_AT_VERSION} = {self.version}"
        # Rows whose versions another client has lost, such as lance-spark 0.4.0, also read as created by
        # version 1. Only rows of version 1 have the first row ids.
        return f"{condition} AND {ROW_ID} < {self.rows}" if self.version == 1 else condition


@dataclass(frozen=True, slots=True)
class RedoneAppend(TableChange):
    """Remove the rows of earlier appends, and add fragments, in one commit."""

    KIND = REDONE_APPEND

    replaced: Sequence[AppendedRows]

    def apply_to(self, latest: LanceDataset | None) -> CommitStep:
        """See `TableChange.apply_to`: other rows that were appended or removed meanwhile aren't affected."""
        from lance import LanceOperation

        rest = None if latest is None else _removed(self.replaced, latest)
        if latest is None or rest is None:
            raise self._conflict("the rows to replace were changed")
        self.check_same_columns(latest)
        operation = LanceOperation.Update(
            removed_fragment_ids=rest.removed,
            updated_fragments=rest.updated,
            new_fragments=list(self.fragments),
        )
        return CommitStep(operation, latest.version, deleted=sum(rows.rows for rows in self.replaced))


def redo_change(
    mode: str, dataset: LanceDataset, commits: Sequence[KeyedCommit], table: str
) -> Callable[..., TableChange]:
    """Return the kind of change in this mode that replaces what commits under its key have written.

    Args:
        mode: the mode.
        dataset: the newest version.
        commits: the commits, newest first.
        table: the table's name, for messages.

    Raises:
        InvalidInputError: (13) a commit cannot be undone without affecting changes of other writers, or what
            it replaced or deleted no longer exists.
    """
    if mode != "append":
        oldest = commits[-1]
        _check_kinds(commits, frozenset({OVERWRITE}), "an overwrite", dataset, table)
        _check_only_maintained(dataset, oldest, table)
        return OverwriteCommit
    _check_kinds(commits, frozenset({APPEND, REDONE_APPEND}), "an append", dataset, table)
    replaced = []
    for commit in commits:
        replaced.append(_appended_rows(dataset, commit, table))
        if _kind_of(dataset, commit) == REDONE_APPEND:
            break
    return partial(RedoneAppend, replaced=replaced)


def check_same_condition(
    condition: str, dataset: LanceDataset, commits: Sequence[KeyedCommit], table: str
) -> None:
    """Check that commits under a key have replaced the rows that match a condition, which is used again.

    Raises:
        InvalidInputError: (13) one has done something else, of which rows would be left.
    """
    kind = replace_where_kind(condition)
    allowed = frozenset({kind, ""})  # older commits don't record their kind
    _check_kinds(commits, allowed, "overwrite with this condition", dataset, table, also_first=False)


def _check_kinds(
    commits: Sequence[KeyedCommit],
    allowed: frozenset[str],
    mode: str,
    dataset: LanceDataset,
    table: str,
    *,
    also_first: bool = True,
) -> None:
    for commit in commits:
        kind = _kind_of(dataset, commit)
        # The first version of a dataset can't have replaced rows.
        if kind in allowed or (also_first and commit.version == 1 and kind not in (DELETION, RESTORE)):
            continue
        did, reason = _DID.get(
            kind.partition("/")[0], ("was not recorded", "so its rows can't be identified")
        )
        raise spec_errors.InvalidInputError(
            f"table {table}: on_existing_key: version {commit.version}, which the key has committed, {did}; "
            f"{mode} can't replace it, {reason}; nothing was written. Use on_existing_key='skip' to keep "
            "what the key has written, 'write_again' to write regardless, or another key"
        )


def _kind_of(dataset: LanceDataset, commit: KeyedCommit) -> str:
    """Return the kind of a commit; the kind of an older commit, which doesn't record it, by its operation."""
    if commit.kind:
        return commit.kind
    transaction = read_transaction(dataset, commit.version)
    if transaction is None:
        if commit.counts.updated is not None:
            return UPSERT
        return APPEND if commit.counts.rows or not commit.uuid else ""  # an older one, or its record is lost
    name = type(transaction.operation).__name__
    if name == "Update" and commit.counts.updated is not None:
        return UPSERT
    return _KINDS.get(name, "")


def _removed(replaced: Sequence[AppendedRows], dataset: LanceDataset) -> RowDeletions | None:
    """Return the dataset's fragments without the rows of several appends; None if it doesn't have them."""
    if len(replaced) == 1:
        return replaced[0].removed_from(dataset)
    fragments: set[int] = set()
    conditions = []
    for rows in replaced:
        own = rows.own_fragments(dataset)
        if own is not None:
            fragments.update(own)
        elif rows.have_versions(dataset):
            conditions.append(f"({rows.condition})")
        else:
            return None
    if not conditions:
        return RowDeletions([], sorted(fragments))
    rest = RowDeletions.where(dataset, " OR ".join(conditions))
    updated = [fragment for fragment in rest.updated if fragment.id not in fragments]
    return RowDeletions(updated, sorted({*rest.removed, *fragments}))


def _appended_rows(dataset: LanceDataset, commit: KeyedCommit, table: str) -> AppendedRows:
    """Return what a commit appended, if all of it is unchanged.

    Raises:
        InvalidInputError: (13) the rows can no longer be identified, or some were changed since.
    """
    transaction = read_transaction(dataset, commit.version)
    if transaction is None:
        rows = AppendedRows(commit.version, commit.counts.rows, None)
    else:
        added = added_fragments(transaction.operation)
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
            "overwrite: other writers have changed rows since, which would be lost; nothing was written. Use "
            "on_existing_key='skip' to keep the table as it is, or 'write_again' if that is intended"
        )


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
