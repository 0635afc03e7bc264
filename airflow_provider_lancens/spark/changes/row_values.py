"""Whether rows have the same values in two versions, where Lance's versions of rows don't tell it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from airflow_provider_lancens.spark.changes.columns_at import ColumnsAt
from airflow_provider_lancens.spark.changes.row_images import OpenFragment
from airflow_provider_lancens.spark.executor_failures import storage_failures
from airflow_provider_lancens.spark.table.dataset_ref import DatasetRef

_FRAGMENT_BITS = 32
_MOST_ROWS = 16_384
"""Rows that are compared at once, fewer if they are large."""

_Mask = NDArray[np.bool_]
_Addresses = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ValueComparison:
    """Compares rows of two versions by their values, as readers of the newer one get them. Picklable."""

    dataset: DatasetRef
    before: ColumnsAt
    after: ColumnsAt

    def differ(self, before: _Addresses, after: _Addresses) -> _Mask:
        """Return which rows aren't equal.

        Args:
            before: the addresses of rows in the older version.
            after: the addresses of the same rows in the newer one.
        """
        with storage_failures(self.dataset.location, self.dataset.storage_options):
            old, new = (_RowsAt(self.dataset, columns) for columns in (self.before, self.after))
            differs = np.zeros(len(after), bool)
            order, start = np.argsort(after), 0
            while start < len(order):
                size = min(
                    _MOST_ROWS, old.batch_rows(before[order[start]]), new.batch_rows(after[order[start]])
                )
                chosen = order[start : start + size]
                differs[chosen] = ~same_rows(old.values(before[chosen]), new.values(after[chosen]))
                start += size
        return differs


class _RowsAt:
    """Rows of one version by their addresses, in any order."""

    def __init__(self, dataset: DatasetRef, columns: ColumnsAt) -> None:
        self._dataset = dataset.open(columns.version)
        self._columns = columns
        self._opened: dict[int, OpenFragment] = {}

    def batch_rows(self, address: np.int64) -> int:
        """Return how many rows like the one at an address to hold in memory at once."""
        return self._fragment(int(address) >> _FRAGMENT_BITS).batch_rows

    def values(self, addresses: _Addresses) -> pa.Table:
        """Return the rows at these addresses."""
        order = np.argsort(addresses)
        parts = [self._fragment(number).values(chosen) for number, chosen in _by_fragment(addresses[order])]
        return pa.Table.from_batches(parts).take(pa.array(np.argsort(order)))

    def _fragment(self, number: int) -> OpenFragment:
        if number not in self._opened:
            self._opened[number] = OpenFragment.of(self._dataset, number, self._columns, None)
        return self._opened[number]


def _by_fragment(addresses: _Addresses) -> Iterator[tuple[int, _Addresses]]:
    fragments = addresses >> _FRAGMENT_BITS
    limits = np.flatnonzero(np.diff(fragments)) + 1
    for part in np.split(addresses, limits):
        yield int(part[0]) >> _FRAGMENT_BITS, part


def same_rows(one: pa.Table, other: pa.Table) -> _Mask:
    """Return which rows of two tables with the same columns are equal, two nulls and two NaNs too."""
    same = np.ones(one.num_rows, bool)
    for left, right in zip(one.columns, other.columns, strict=True):
        same &= _same(_combined(left), _combined(right))
    return same


def _combined(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return pa.concat_arrays(combined.chunks) if isinstance(combined, pa.ChunkedArray) else combined


def _same(one: pa.Array, other: pa.Array) -> _Mask:
    if isinstance(one, pa.ExtensionArray):
        return _same(one.storage, other.storage)
    nulls, other_nulls = (_mask(array.is_null()) for array in (one, other))
    there = ~nulls & ~other_nulls
    same = nulls & other_nulls
    if there.any():
        chosen = pa.array(there)
        same[there] = _same_values(one.filter(chosen), other.filter(chosen))
    return same


def _same_values(one: Any, other: Any) -> _Mask:
    """Compare values that aren't null."""
    kind = one.type
    if pa.types.is_struct(kind):
        same = np.ones(len(one), bool)
        for number in range(kind.num_fields):
            same &= _same(pc.struct_field(one, number), pc.struct_field(other, number))
        return same
    if pa.types.is_map(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _same_lists(one, other)
    if pa.types.is_fixed_size_list(kind):
        same = _same(one.flatten(), other.flatten())
        rows: _Mask = np.all(same.reshape(len(one), kind.list_size), axis=1)
        return rows
    if pa.types.is_null(kind):
        return np.ones(len(one), bool)
    equal = _mask(pc.equal(one, other))
    if pa.types.is_floating(kind):
        equal |= _mask(pc.and_(pc.is_nan(one), pc.is_nan(other)))
    return equal


def _same_lists(one: Any, other: Any) -> _Mask:
    lengths, other_lengths = (np.diff(array.offsets.to_numpy()) for array in (one, other))
    same = lengths == other_lengths
    if same.any():
        chosen, lengths = pa.array(same), lengths[same]
        left, right = (_elements(array.filter(chosen)) for array in (one, other))
        wrong = ~_same(left, right)
        rows = np.repeat(np.arange(len(lengths)), lengths)
        same[same] = np.bincount(rows[wrong], minlength=len(lengths)) == 0
    result: _Mask = same
    return result


def _elements(array: Any) -> pa.Array:
    if pa.types.is_map(array.type):
        start, end = array.offsets[0].as_py(), array.offsets[-1].as_py()
        entries = [part[start:end] for part in (array.keys, array.items)]
        return pa.StructArray.from_arrays(entries, names=["key", "value"])
    return array.flatten()


def _mask(array: pa.Array) -> _Mask:
    mask: _Mask = array.to_numpy(zero_copy_only=False).astype(bool)
    return mask
