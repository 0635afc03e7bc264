"""Fragments that differ between two versions; only their rows can have changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from airflow_provider_lancens.spark.table.column_history import Commits
from airflow_provider_lancens.spark.table.history import data_files, kept_version

if TYPE_CHECKING:
    from lance import LanceDataset, Transaction
    from lance.fragment import DataFile, FragmentMetadata, LanceFragment


@dataclass(frozen=True, slots=True)
class ChangedFragment:
    """A fragment that one of two versions lacks, or that isn't the same in both."""

    before: int | None
    """Its id in the older version."""
    after: int | None
    """Its id in the newer version."""
    same_values: bool = False
    """Whether both have the same data files for the columns, so that only deletions differ."""
    rewritten: bool = False
    """Whether columns may have got other values in rows that Lance doesn't show as updated."""
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


def changed_fragments(
    before: LanceDataset, after: LanceDataset, fields: frozenset[int], commits: Commits
) -> list[ChangedFragment]:
    """Compare the fragments of two versions, by their metadata.

    Args:
        before: the older version.
        after: the newer version.
        fields: the ids of the fields whose values matter.
        commits: the commits between the two.
    """
    old = {fragment.id: fragment for fragment in _metadata(before)}
    new = {fragment.id: fragment for fragment in _metadata(after)}
    kept = {number for number in old.keys() & new.keys() if _is_same(old[number], new[number])}
    pairs = [_pair(old[number], new[number], fields) for number in sorted(kept)]
    # Compaction moves rows to other fragments, after which their files don't show what was computed before.
    rewritten = any(
        transaction is not None and _rewrites(after, version, transaction, fields)
        for version, transaction in commits
    )
    return [
        *(pair for pair in pairs if pair is not None),
        *(ChangedFragment.of(old[number], None) for number in sorted(old.keys() - kept)),
        *(ChangedFragment.of(None, new[number], rewritten=rewritten) for number in sorted(new.keys() - kept)),
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


def _pair(old: FragmentMetadata, new: FragmentMetadata, fields: frozenset[int]) -> ChangedFragment | None:
    same = _files(old.files, fields) == _files(new.files, fields)
    if same and old.to_json()["deletion_file"] == new.to_json()["deletion_file"]:
        return None
    return ChangedFragment.of(old, new, same_values=same, rewritten=not same)


def _size(fragment: FragmentMetadata) -> int:
    return sum(file.file_size_bytes or 0 for file in fragment.files)


def _files(files: list[DataFile], fields: frozenset[int]) -> dict[int, str]:
    return {number: file.path for file in files for number in file.fields if number in fields}


def _rewrites(dataset: LanceDataset, version: int, transaction: Transaction, fields: frozenset[int]) -> bool:
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
    return not fields.isdisjoint(written)


def _paths_at(dataset: LanceDataset, version: int) -> set[str]:
    """Return the paths of a version's data files; none if it was cleaned up."""
    found = kept_version(dataset, version)
    return set() if found is None else {file.path for file in data_files(found)}
