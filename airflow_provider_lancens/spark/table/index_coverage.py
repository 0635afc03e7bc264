"""Which rows an index covers: whether those of an earlier version are all in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_lancens.spark.table.history import transactions

if TYPE_CHECKING:
    from lance import LanceDataset


def covers(dataset: LanceDataset, index: str, version: int) -> bool:
    """Return whether an index covers all rows of an earlier version that are still there.

    Args:
        dataset: the dataset, opened at the version of the index.
        index: name of the index; False if there is none of that name.
        version: the version of the rows. If it isn't kept, all rows must be covered. A compaction that also
            rewrote fragments of this version counts as one that mixed all the rows it rewrote.
    """
    found = next((one for one in dataset.describe_indices() if one.name == index), None)
    if found is None:
        return False
    covered = {fragment for segment in found.segments for fragment in segment.fragment_ids}
    missing = {fragment.fragment_id for fragment in dataset.get_fragments()} - covered
    return not missing or missing.isdisjoint(_fragments_of(dataset, version, missing))


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
