"""Whether an index may be extended: not if its segments have values that were rewritten since, or miss rows.

Where a column of a fragment is rewritten, Lance takes the fragment out of what the column's indices cover,
but its old values stay in their segments, also past a compaction. As soon as another segment covers these
rows, Lance finds them by their old values too. With stable row ids the same is true of rows that an update
moved to another fragment, where they keep their ids. Such an index is built anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.spark.maintenance.maintenance_options import IndexSpec
from airflow_provider_lancens.spark.table.history import transactions
from airflow_provider_lancens.spark.table.index_coverage import versions_of_rows, were_updated

if TYPE_CHECKING:
    from lance import LanceDataset, Transaction
    from lance.fragment import LanceFragment

COMPUTED = "lancens.computed"
"""Metadata of columns whose values may be rewritten in place."""


_CHECKS_VALUES = frozenset({"BTREE", "NGRAM", "ZONEMAP", "BLOOMFILTER"})
"""Types of indices by whose old values Lance doesn't find a row that was moved."""


def may_have_old_values(
    dataset: LanceDataset, spec: IndexSpec, segments: Sequence[Any], missing: Iterable[LanceFragment]
) -> bool:
    """Return whether segments of an index may have other values of rows that another segment is to cover.

    Args:
        dataset: the dataset.
        spec: the index.
        segments: its segments, as Lance describes them.
        missing: the fragments that no segment covers.
    """
    if spec.index_type not in _CHECKS_VALUES and _were_moved(dataset, segments, missing):
        return True
    return _is_rewritten(dataset, spec.column, segments)


def has_old_values(dataset: LanceDataset, index: Any) -> bool:
    """Return whether another segment of an index covers rows that an older one may have with other values.

    Queries then find such rows by their old values too; of a vector index they don't. This package never
    extends an index so, but pylance's ``optimize_indices(num_indices_to_merge=0)`` does. Where another client
    has merged the segments since, this can't be told any more.

    Args:
        dataset: the dataset.
        index: the index, as Lance describes it.
    """
    segments, fragments = index.segments, {one.fragment_id: one for one in dataset.get_fragments()}
    built = {segment.dataset_version_at_last_update for segment in segments}
    if len(built) < 2:
        return False
    kind = index.index_type.replace("_", "").upper()
    if kind not in _CHECKS_VALUES and not kind.startswith("IVF"):
        for segment in segments:
            older = [one for one in built if one < segment.dataset_version_at_last_update]
            covered = [fragments[one] for one in segment.fragment_ids if one in fragments]
            if were_updated(dataset, covered, older):
                return True
    return all(
        name in dataset.schema.names and _is_rewritten(dataset, name, segments) for name in index.field_names
    )


def _were_moved(dataset: LanceDataset, segments: Sequence[Any], missing: Iterable[LanceFragment]) -> bool:
    """Return whether rows that no segment covers are older than a segment, which then may have them."""
    newest = max(segment.dataset_version_at_last_update for segment in segments)
    return any(version <= newest for version in versions_of_rows(dataset, missing))


def _is_rewritten(dataset: LanceDataset, column: str, segments: Sequence[Any]) -> bool:
    """Return whether a column may have been rewritten since the oldest segment of an index was built."""
    ids = frozenset(_ids(dataset.lance_schema.field(column)))
    is_marked = COMPUTED.encode() in (dataset.schema.field(column).metadata or {})
    if not is_marked and not _is_in_own_files(dataset, ids):
        return False
    # A compaction replaces segments, but keeps this version.
    built = min(segment.dataset_version_at_last_update for segment in segments)
    return any(_rewrites(transaction, ids) for _, transaction in transactions(dataset, built))


def _rewrites(transaction: Transaction | None, ids: frozenset[int]) -> bool:
    if transaction is None:  # of a version that was cleaned up
        return True
    operation: Any = transaction.operation
    modified = getattr(operation, "fields_modified", None) or ()
    return not ids.isdisjoint(modified) or type(operation).__name__ == "DataReplacement"


def _is_in_own_files(dataset: LanceDataset, ids: frozenset[int]) -> bool:
    """Return whether a fragment has the column in another file than the one that it was made with."""
    return any(
        not ids.isdisjoint(file.fields)
        for fragment in dataset.get_fragments()
        for file in fragment.metadata.files[1:]
    )


def _ids(field: Any) -> Iterator[int]:
    yield field.id()
    for child in field.children():
        yield from _ids(child)
