"""Fragments that differ between two versions; only their rows can have changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from airflow_provider_lancens.spark.table.column_history import Commits
from airflow_provider_lancens.spark.table.field_ids import described_fields
from airflow_provider_lancens.spark.table.history import (
    data_files,
    deletions_of,
    kept_version,
    restored_version,
    transactions_of,
)

if TYPE_CHECKING:
    from lance import LanceDataset, Transaction
    from lance.fragment import FragmentMetadata, LanceFragment

_Path = tuple[str, ...]
_Fields = Mapping[int, _Path]
"""The fields of the columns to read, by their ids in a version: the newest version's name of the column, and
the names inside it."""
_CHANGES_ROWS = frozenset({"Update", "Delete", "Rewrite", "Merge", "DataReplacement"})
"""Operations by which lance-spark 0.4.0 loses the versions of rows."""


class Compared(NamedTuple):
    """Two versions, and the columns to compare."""

    before: LanceDataset
    after: LanceDataset
    names: Mapping[str, str | None]
    """The name in the older version of each column of the newer one; None if it doesn't have it."""

    @property
    def old_fields(self) -> _Fields:
        """The fields of the columns in the older version."""
        return _fields(self.before, {old: new for new, old in self.names.items() if old is not None})

    @property
    def new_fields(self) -> _Fields:
        """The fields of the columns in the newer version."""
        return _fields(self.after, {name: name for name in self.names})


@dataclass(frozen=True, slots=True)
class ChangedFragment:
    """A fragment that one of two versions lacks, or that isn't the same in both."""

    before: int | None
    """Its id in the older version."""
    after: int | None
    """Its id in the newer version."""
    same_values: bool = False
    """Whether both have the same data files for the columns, so that only deletions differ."""
    compare_values: bool = False
    """Whether rows may have other values although Lance doesn't show them as updated."""
    rows: int = 0
    """The number of its rows in both versions."""
    compared_rows: int = 0
    """About how many of them may have changed."""
    changed_bytes: int = 0
    """About how many bytes of it, in both versions, may have changed."""

    @classmethod
    def of(cls, before: FragmentMetadata | None, after: FragmentMetadata | None, **how: bool) -> Self:
        """Describe a fragment by its metadata in both versions, None where it isn't."""
        sides = [one for one in (before, after) if one is not None]
        rows = compared = sum(one.physical_rows for one in sides)
        if how.get("same_values") and before is not None and after is not None:
            compared = abs(before.num_deletions - after.num_deletions)
        size = sum(map(_size, sides)) * compared // max(rows, 1)
        ids = [None if one is None else one.id for one in (before, after)]
        return cls(ids[0], ids[1], **how, rows=rows, compared_rows=compared, changed_bytes=size)


def changed_fragments(compared: Compared, commits: Commits) -> list[ChangedFragment]:
    """Compare the fragments of two versions, by their metadata.

    Args:
        compared: the versions.
        commits: the commits between the two.
    """
    before, after, _ = compared
    old_fields, new_fields = compared.old_fields, compared.new_fields
    old = {fragment.id: fragment for fragment in _metadata(before)}
    new = {fragment.id: fragment for fragment in _metadata(after)}
    kept = {number for number in old.keys() & new.keys() if _is_same(old[number], new[number])}
    gone, added = sorted(old.keys() - kept), sorted(new.keys() - kept)
    pairs = [
        (number, same_values)
        for number in sorted(kept)
        for same_values in [_values(old[number], old_fields) == _values(new[number], new_fields)]
        if not same_values or deletions_of(old[number]) != deletions_of(new[number])
    ]
    # Where rows may have moved, to other fragments or back by a restore, no file shows what was written.
    unsure = bool(gone or pairs) and (
        _by_path(old_fields) != _by_path(new_fields)
        or _may_lack_updates(before.version, after, commits, new_fields)
    )
    return [
        *(
            ChangedFragment.of(old[number], new[number], same_values=same, compare_values=unsure or not same)
            for number, same in pairs
        ),
        *(ChangedFragment.of(old[number], None) for number in gone),
        *(ChangedFragment.of(None, new[number], compare_values=unsure) for number in added),
    ]


def existing_fragment(dataset: LanceDataset, number: int) -> LanceFragment:
    """Return a fragment of a version by its id.

    Raises:
        ValueError: the version has no such fragment.
    """
    found = dataset.get_fragment(number)
    if found is None:
        raise ValueError(f"version {dataset.version} has no fragment {number}")
    return found


def _metadata(dataset: LanceDataset) -> Iterator[FragmentMetadata]:
    return (fragment.metadata for fragment in dataset.get_fragments())


def _is_same(old: FragmentMetadata, new: FragmentMetadata) -> bool:
    """Return whether both are one fragment, rather than two with one id, as a Restore can lead to."""
    return bool({file.path for file in old.files} & {file.path for file in new.files})


def _fields(dataset: LanceDataset, names: Mapping[str, str]) -> _Fields:
    """Return the fields of some columns, which are called otherwise in the newest version."""
    wanted = [one for one in dataset.lance_schema.fields() if one.name() in names]
    described = described_fields(wanted)
    return {number: (names[one.path[0]], *one.path[1:]) for number, one in described.items()}


def _by_path(fields: _Fields) -> dict[_Path, int]:
    return {path: number for number, path in fields.items()}


def _values(fragment: FragmentMetadata, fields: _Fields) -> dict[_Path, object]:
    """Return where the values of each field are; those of fields without a file are null."""
    overlays = str(fragment.overlays or "")
    return {
        fields[number]: (number, file.path, overlays)
        for file in fragment.files
        for number in file.fields
        if number in fields
    }


def _size(fragment: FragmentMetadata) -> int:
    return sum(file.file_size_bytes or 0 for file in fragment.files)


def _may_lack_updates(after_version: int, newest: LanceDataset, commits: Commits, fields: _Fields) -> bool:
    """Return whether the versions of rows may not tell which of them were updated between two versions.

    A client may write columns without updating the rows, and lance-spark 0.4.0 loses the versions of rows,
    which are then 1. What was cleaned up may have done either, and a restore undoes both.
    """
    undone: list[int] = []
    for version, transaction in commits:
        if transaction is None or _loses_updates(newest, version, transaction, fields):
            return True
        if (restored := restored_version(transaction)) is not None:
            undone.append(restored)
    first = min(undone, default=after_version)
    if first >= after_version:
        return False
    # It is older than the range: what was done between them was undone in the range.
    last = kept_version(newest, after_version)
    return last is None or _may_lack_updates(first, last, transactions_of(last, first), fields)


def _loses_updates(dataset: LanceDataset, version: int, transaction: Transaction, fields: _Fields) -> bool:
    if _rewrites(dataset, version, transaction, fields):
        return True
    if type(transaction.operation).__name__ not in _CHANGES_ROWS:
        return False
    found = kept_version(dataset, version)
    return found is None or any(one.last_updated_at_version_meta is None for one in _metadata(found))


def _rewrites(dataset: LanceDataset, version: int, transaction: Transaction, fields: _Fields) -> bool:
    """Return whether a transaction wrote columns of rows that exist, which updates no row to Lance."""
    operation: Any = transaction.operation
    written = set(getattr(operation, "fields_modified", None) or [])
    kind = type(operation).__name__
    if kind == "DataReplacement":
        written |= {number for one in operation.replacements for number in one.new_file.fields}
    elif kind == "Merge":  # it also adds columns without values
        files = [file for fragment in operation.fragments for file in fragment.files]
        known = _paths_at(dataset, version - 1)
        written |= {number for file in files if file.path not in known for number in file.fields}
    return not fields.keys().isdisjoint(written)


def _paths_at(dataset: LanceDataset, version: int) -> set[str]:
    """Return the paths of a version's data files; none if it was cleaned up."""
    found = kept_version(dataset, version)
    return set() if found is None else {file.path for file in data_files(found)}
