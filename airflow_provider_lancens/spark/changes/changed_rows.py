"""Which rows changed, and how: compared on executors by stable id and by the version that updated them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from airflow_provider_lancens.spark.changes.changed_parts import Part
from airflow_provider_lancens.spark.changes.row_addresses import ADDRESSES, AddressTask
from airflow_provider_lancens.spark.changes.row_images import IMAGES, ImageTask
from airflow_provider_lancens.spark.changes.row_values import ValueComparison

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BATCH_ROWS = 65_536
_DENSE = 8
"""Ids whose range has at most this many for each of them are found by a table."""


@dataclass(frozen=True, slots=True)
class ComparisonTask:
    """Compare the rows of both versions; those with one id must come to the same task."""

    after_version: int
    """The older version."""
    is_staged: bool
    """Whether the newer version is staged, so that it has no number that its rows could be labeled with."""
    values: ValueComparison
    """Compares rows whose versions don't tell whether they changed."""

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the addresses of the rows that aren't the same, as `IMAGES`.

        Args:
            batches: rows of both versions, as `ADDRESSES`.
        """
        rows = pa.Table.from_batches(batches, schema=ADDRESSES)
        before, after = (_Side.of(rows.filter(chosen)) for chosen in _sides(rows))
        del rows
        old, new = _common(before.ids, after.ids)
        deleted, inserted = _others(before.ids, old), _others(after.ids, new)
        updated = before.updated[old] != after.updated[new]
        unsure = after.compare_values[new]
        if unsure.any():
            addresses = (before.addresses[old[unsure]], after.addresses[new[unsure]])
            updated[unsure] = self.values.differ(*addresses)
        old, new, made_by = old[updated], new[updated], self._made_by(after)
        for images in (
            _images("delete", False, before.addresses[deleted], pa.nulls(len(deleted), pa.int64())),
            _images("update_preimage", False, before.addresses[old], made_by.take(pa.array(new))),
            _images("update_postimage", True, after.addresses[new], made_by.take(pa.array(new))),
            _images("insert", True, after.addresses[inserted], made_by.take(pa.array(inserted))),
        ):
            yield from images.to_batches(_BATCH_ROWS)

    def _made_by(self, after: _Side) -> pa.Array:
        unknown = self.is_staged | (after.updated <= self.after_version)
        return pa.array(after.updated, mask=unknown)


@dataclass(frozen=True, slots=True)
class PartTask:
    """List, compare and read the rows of fragments that have no row in common with others."""

    listing: AddressTask
    comparison: ComparisonTask
    images: ImageTask
    parts: Sequence[Part]

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the changed rows of the parts at the positions in `batches`."""
        for batch in batches:
            for position in batch.column(0).to_pylist():
                yield from self.images.run(self._changed(self.parts[position]))

    def _changed(self, part: Part) -> Iterator[pa.RecordBatch]:
        changed = self.comparison.run(self.listing.list(part.fragments))
        table = pa.Table.from_batches(changed, schema=IMAGES)
        start, end = (table.num_rows * share // part.shares for share in (part.share, part.share + 1))
        ordered = table.sort_by([("is_after", "ascending"), ("address", "ascending")])
        yield from ordered.slice(start, end - start).to_batches(_BATCH_ROWS)


@dataclass(frozen=True, slots=True)
class _Side:
    """The rows of one version."""

    ids: NDArray[np.int64]
    addresses: NDArray[np.int64]
    updated: NDArray[np.int64]
    """The version that last updated each row; 0 if Lance doesn't know it."""
    compare_values: NDArray[np.bool_]

    @classmethod
    def of(cls, rows: pa.Table) -> _Side:
        return cls(
            rows["row_id"].to_numpy(),
            rows["address"].to_numpy(),
            rows["updated"].fill_null(0).to_numpy(),
            rows["compare_values"].to_numpy(),
        )


def _sides(rows: pa.Table) -> tuple[Any, Any]:
    is_after = rows["is_after"].to_numpy()
    return pa.array(~is_after), pa.array(is_after)


def _common(before: NDArray[np.int64], after: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the positions of the ids that are in both, in the order of the later ones."""
    if not len(before) or not len(after):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    lowest = before.min()
    span = int(before.max() - lowest) + 1
    if span > _DENSE * len(before):
        _, old, new = np.intersect1d(before, after, assume_unique=True, return_indices=True)
        return old, new
    # Ids are mostly consecutive, for which a table of positions is ten times as fast as a sort.
    table = np.full(span, -1, np.int32)
    table[before - lowest] = np.arange(len(before), dtype=np.int32)
    within = np.flatnonzero((after >= lowest) & (after < lowest + span))
    old = table[after[within] - lowest]
    return old[old >= 0], within[old >= 0]


def _others(ids: NDArray[np.int64], common: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the positions of ids but those at these positions."""
    others = np.ones(len(ids), bool)
    others[common] = False
    return np.flatnonzero(others)


def _images(change_type: str, is_after: bool, addresses: NDArray[np.int64], made_by: pa.Array) -> pa.Table:
    side, kind = (pa.repeat(pa.scalar(one), len(addresses)) for one in (is_after, change_type))
    return pa.Table.from_arrays([side, pa.array(addresses), kind, made_by], schema=IMAGES)
