"""Which rows changed, and how: compared on executors by stable id and by the version that updated them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from airflow_provider_lancens.spark.changes.row_addresses import ADDRESSES
from airflow_provider_lancens.spark.changes.row_images import IMAGES

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
        _, old, new = np.intersect1d(before.ids, after.ids, assume_unique=True, return_indices=True)
        updated = (before.updated[old] != after.updated[new]) | after.rewritten[new]
        made_by = self._made_by(after)
        no_version = pa.nulls(len(before.ids), pa.int64())
        yield from _images("delete", False, before.addresses, no_version, _without(before, old))
        yield from _images("update_preimage", False, before.addresses[old], made_by.take(new), updated)
        yield from _images("update_postimage", True, after.addresses[new], made_by.take(new), updated)
        yield from _images("insert", True, after.addresses, made_by, _without(after, new))

    def _made_by(self, after: _Side) -> pa.Array:
        unknown = self.is_staged | (after.updated <= self.after_version)
        return pa.array(after.updated, mask=unknown)


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


def _without(side: _Side, common: NDArray[np.int64]) -> NDArray[np.bool_]:
    alone = np.ones(len(side.ids), bool)
    alone[common] = False
    return alone


def _images(
    change_type: str,
    is_after: bool,
    addresses: NDArray[np.int64],
    made_by: pa.Array,
    chosen: NDArray[np.bool_],
) -> Iterator[pa.RecordBatch]:
    wanted = pa.array(addresses[chosen])
    constants = (pa.repeat(pa.scalar(one), len(wanted)) for one in (is_after, change_type))
    side, kind = constants
    columns = [side, wanted, kind, made_by.filter(pa.array(chosen))]
    yield from pa.Table.from_arrays(columns, schema=IMAGES).to_batches(_BATCH_ROWS)
