"""Extending an index: segments over the rows that it lacks, and one in place of many small segments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.spark.maintenance.index_training import trained_before
from airflow_provider_lancens.spark.maintenance.maintenance_options import (
    DEFAULT_MAX_DELETED_SHARE,
    IndexSpec,
)
from airflow_provider_lancens.spark.maintenance.rewritten_columns import has_old_values, may_have_old_values
from airflow_provider_lancens.spark.table.index_coverage import deleted_share, misses_rows

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance.fragment import LanceFragment

_MOST_SEGMENTS = 2
"""Small segments are merged once an index has this many times the segments that it was built with."""


@dataclass(frozen=True, slots=True)
class Extension:
    """New segments of an index."""

    fragments: Sequence[LanceFragment]
    """What they cover: fragments without a segment, and those of small segments, which they replace."""
    shared: Mapping[str, Any] = field(repr=False)
    """Arguments that they share with the other segments."""


def plan_extension(
    dataset: LanceDataset,
    storage_options: Mapping[str, str] | None,
    spec: IndexSpec,
    present: Any,
    segments: int,
) -> Extension | None:
    """Return how an index is extended to all rows.

    Args:
        dataset: the dataset.
        storage_options: of its storage.
        spec: the index to build.
        present: the index, as Lance describes it.
        segments: with how many segments it would be built.

    Returns:
        An extension, which covers nothing if the index covers all rows; None if the index must be built
        anew: its segments miss rows or have old values of the column, or it is a vector index that is trained
        with other options or on too few rows, or has many rows that are deleted.
    """
    if misses_rows(dataset, present.segments) or has_old_values(dataset, present):
        return None
    if deleted_share(dataset, present) > DEFAULT_MAX_DELETED_SHARE:
        return None
    covered = {fragment for segment in present.segments for fragment in segment.fragment_ids}
    everything = dataset.get_fragments()
    missing = {fragment.fragment_id for fragment in everything} - covered
    if not missing:
        return Extension([], {})
    uncovered = [fragment for fragment in everything if fragment.fragment_id in missing]
    if may_have_old_values(dataset, spec, present.segments, uncovered):
        return None
    shared = trained_before(dataset, storage_options, spec, present) if spec.is_vector else spec.options
    if shared is None:
        return None
    if len(present.segments) >= _MOST_SEGMENTS * segments:
        missing |= _of_small_segments(everything, present.segments, segments)
    return Extension([one for one in everything if one.fragment_id in missing], shared)


def _of_small_segments(
    everything: Sequence[LanceFragment], present: Sequence[Any], segments: int
) -> set[int]:
    """Return the fragments of all segments that have less than half of an equal share of the rows."""
    rows = {fragment.fragment_id: fragment.metadata.physical_rows for fragment in everything}
    half_a_share = sum(rows.values()) / segments / 2
    small = [
        segment.fragment_ids
        for segment in present
        if sum(rows.get(fragment, 0) for fragment in segment.fragment_ids) < half_a_share
    ]
    return {fragment for fragments in small for fragment in fragments}
