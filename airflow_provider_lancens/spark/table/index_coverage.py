"""Coverage of an index: whether it covers all rows of an earlier version that still exist."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.namespace.system_columns import CREATED_AT_VERSION, UPDATED_AT_VERSION
from airflow_provider_lancens.spark.table.column_history import field_ids
from airflow_provider_lancens.spark.table.history import transactions

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance.fragment import LanceFragment


def covers(dataset: LanceDataset, index: str, version: int) -> bool:
    """Return whether an index covers all rows of an earlier version that are still there.

    Args:
        dataset: the dataset, opened at the version of the index.
        index: name of the index; False if there is none of that name, or its column no longer exists.
        version: the version of the rows. If it isn't kept, all rows must be covered. A compaction that also
            rewrote fragments of this version counts as if it had mixed all the rows it rewrote.
    """
    found = next(
        (description for description in dataset.describe_indices() if description.name == index), None
    )
    if found is None or lacks_column(dataset, found):
        return False
    covered = {fragment for segment in found.segments for fragment in segment.fragment_ids}
    missing = {fragment.fragment_id for fragment in dataset.get_fragments()} - covered
    return not missing or missing.isdisjoint(_fragments_of(dataset, version, missing))


def lacks_column(dataset: LanceDataset, index: Any) -> bool:
    """Return whether an index refers to a field that no column has, so that each read with a filter fails.

    Such indices are left by other clients that built one while its column was dropped or converted.

    Args:
        dataset: the dataset.
        index: the index, as Lance describes it.
    """
    return not field_ids(dataset.lance_schema.fields()).issuperset(index.fields)


def misses_rows(dataset: LanceDataset, segments: Iterable[Any]) -> bool:
    """Return whether a segment of an index claims to cover rows that were created after it was built.

    Queries by the index don't find them. Such segments are left by clients that commit an update with Lance's
    update mode, on tables with stable row ids. Only a new index has the rows: extending, merging and
    compacting keep them out. If another client has merged the segments since, this is unknown.

    Args:
        dataset: the dataset.
        segments: the segments, as Lance describes them.
    """
    fragments = {fragment.fragment_id: fragment for fragment in dataset.get_fragments()}
    for segment in segments:
        covered = [fragments[number] for number in segment.fragment_ids if number in fragments]
        built = segment.dataset_version_at_last_update
        if any(version > built for version in versions_of_rows(dataset, covered)):
            return True
    return False


def deleted_share(dataset: LanceDataset, index: Any) -> float:
    """Return the share of the rows of a vector index that its table no longer has, 0 to 1.

    With stable row ids such an index keeps rows that were deleted. Lance leaves them out of a search as long
    as a fragment of the index has a deletion file or is gone. Once a compaction has written the fragments
    anew, they take places among the nearest rows, so that a query returns fewer than it was asked for.
    Rows whose vector is null aren't in the index, and hide as many deleted ones.

    Args:
        dataset: the dataset.
        index: the index, as Lance describes it.
    """
    if not index.index_type.startswith("IVF") or not dataset.has_stable_row_ids:
        return 0.0
    covered = {fragment for segment in index.segments for fragment in segment.fragment_ids}
    rows = sum(
        fragment.metadata.physical_rows
        for fragment in dataset.get_fragments()
        if fragment.fragment_id in covered
    )
    # Lance would return the vectors in the middle of all partitions too, and warn that it won't any more.
    os.environ.setdefault("LANCE_INCLUDE_VECTOR_CENTROIDS", "false")
    segments = dataset.stats.index_stats(index.name)["indices"]
    indexed = sum(partition["size"] for segment in segments for partition in segment["partitions"])
    return max(indexed - rows, 0) / indexed if indexed else 0.0


def versions_of_rows(dataset: LanceDataset, fragments: Iterable[LanceFragment]) -> Iterator[int]:
    """Yield the least and the greatest of the versions that created rows, of each part of some fragments.

    They are in the manifest. Without stable row ids nothing is known of them.
    """
    chosen = list(fragments)
    if not chosen or not dataset.has_stable_row_ids:
        return
    import pyarrow.compute as pc

    for batch in dataset.scanner(columns=[CREATED_AT_VERSION], fragments=chosen).to_batches():
        if batch.num_rows:
            found = pc.min_max(batch.column(0))
            yield from (found["min"].as_py(), found["max"].as_py())


def were_updated(dataset: LanceDataset, fragments: Sequence[LanceFragment], after: Sequence[int]) -> bool:
    """Return whether rows of some fragments existed at one of these versions, and were updated after it.

    The versions of rows are in the manifest. Without stable row ids nothing is known of them.
    """
    if not fragments or not after or not dataset.has_stable_row_ids:
        return False
    import pyarrow.compute as pc

    columns = [CREATED_AT_VERSION, UPDATED_AT_VERSION]
    for batch in dataset.scanner(columns=columns, fragments=list(fragments)).to_batches():
        created, updated = batch.column(CREATED_AT_VERSION), batch.column(UPDATED_AT_VERSION)
        for version in after:
            is_old, is_new = pc.less_equal(created, version), pc.greater(updated, version)
            if pc.any(pc.and_(is_old, is_new)).as_py():
                return True
    return False


def _fragments_of(dataset: LanceDataset, version: int, missing: set[int]) -> set[int]:
    """Return the fragments that may have rows of a version; all of `missing` if that is unknown."""
    kept = {reference["version"] for reference in dataset.version_refs()}
    if not kept.issuperset(range(version, dataset.version + 1)):
        return missing
    fragments = _fragments_at(dataset, version)
    for later, transaction in sorted(transactions(dataset, version), key=lambda entry: entry[0]):
        # pylance 14 can't read which fragments a compaction rewrote if it also rewrote an index.
        if transaction is None or type(transaction.operation).__name__ == "Rewrite":
            before, after = _fragments_at(dataset, later - 1), _fragments_at(dataset, later)
            if not fragments.isdisjoint(before - after):
                fragments |= after - before
    return fragments


def _fragments_at(dataset: LanceDataset, version: int) -> set[int]:
    return {fragment.fragment_id for fragment in dataset.checkout_version(version).get_fragments()}
