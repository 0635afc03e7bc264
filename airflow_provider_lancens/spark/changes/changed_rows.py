"""Which rows changed, and how: compared on executors by stable id and by the version that updated them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from airflow_provider_lancens.spark.changes.fragment_groups import Group
from airflow_provider_lancens.spark.changes.row_addresses import ADDRESSES, AddressTask
from airflow_provider_lancens.spark.changes.row_images import IMAGES, ImageTask

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BATCH_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class ComparisonTask:
    """Compare the rows of both versions; those with one id must come to the same task."""

    after_version: int
    """The older version."""
    is_staged: bool
    """Whether the newer version is staged, so that it has no number that its rows could be labeled with."""

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the addresses of the rows that aren't the same, as `IMAGES`.

        Args:
            batches: rows of both versions, as `ADDRESSES`.
        """
        rows = pa.Table.from_batches(batches, schema=ADDRESSES)
        before, after = (_Side.of(rows.filter(chosen)) for chosen in _sides(rows))
        del rows
        _, old, new = np.intersect1d(before.ids, after.ids, assume_unique=True, return_indices=True)
        deleted, inserted = _others(before.ids, old), _others(after.ids, new)
        updated = (before.updated[old] != after.updated[new]) | after.rewritten[new]
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
class GroupTask:
    """List and compare the rows of fragments that have no row in common with others."""

    listing: AddressTask
    comparison: ComparisonTask
    groups: Sequence[Group]
    images: ImageTask | None = None
    """Reads the changed rows too, if they are few."""

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the changed rows of the groups at the positions in `batches`, or only their addresses."""
        for batch in batches:
            for position in batch.column(0).to_pylist():
                changed = self.comparison.run(self.listing.list(self.groups[position]))
                yield from changed if self.images is None else self.images.run(_sorted(changed))


@dataclass(frozen=True, slots=True)
class _Side:
    """The rows of one version."""

    ids: NDArray[np.int64]
    addresses: NDArray[np.int64]
    updated: NDArray[np.int64]
    """The version that last updated each row; 0 if Lance doesn't know it."""
    rewritten: NDArray[np.bool_]

    @classmethod
    def of(cls, rows: pa.Table) -> _Side:
        return cls(
            rows["row_id"].to_numpy(),
            rows["address"].to_numpy(),
            rows["updated"].fill_null(0).to_numpy(),
            rows["rewritten"].to_numpy(),
        )


def _sides(rows: pa.Table) -> tuple[Any, Any]:
    is_after = rows["is_after"].to_numpy()
    return pa.array(~is_after), pa.array(is_after)


def _others(ids: NDArray[np.int64], common: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the positions of ids but those at these positions."""
    others = np.ones(len(ids), bool)
    others[common] = False
    return np.flatnonzero(others)


def _sorted(images: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    table = pa.Table.from_batches(images, schema=IMAGES)
    yield from table.sort_by([("is_after", "ascending"), ("address", "ascending")]).to_batches(_BATCH_ROWS)


def _images(change_type: str, is_after: bool, addresses: NDArray[np.int64], made_by: pa.Array) -> pa.Table:
    side, kind = (pa.repeat(pa.scalar(one), len(addresses)) for one in (is_after, change_type))
    return pa.Table.from_arrays([side, pa.array(addresses), kind, made_by], schema=IMAGES)
