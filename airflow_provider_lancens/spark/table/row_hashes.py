"""Hashes of rows by their values, the same for equal rows wherever they are; and a digest of many rows.

The digest doesn't depend on the order of the rows, nor on how they are divided among tasks, nor on further
columns of nulls. Epochs of streams are recognized by it: Spark repeats an epoch with the same rows, but not
in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

if TYPE_CHECKING:
    import numpy.typing as npt

    Hashes = npt.NDArray[np.uint64]


_MIX = np.uint64(0x9E3779B97F4A7C15)
_NULL = np.uint64(0x5851F42D4C957F2D)
_SHIFT = np.uint64(32)
_NARROW = (pa.int32(), pa.date32(), pa.time32("s"), pa.time32("ms"))
"""Types that Arrow converts to numbers of 32 bits alone."""


def row_hashes(columns: Sequence[pa.Array], rows: int) -> Hashes:
    """Return a hash of each row.

    Args:
        columns: the columns.
        rows: the number of rows, for rows without columns.

    Raises:
        pa.ArrowNotImplementedError: a column has a type whose values have no hash.
    """
    hashes = np.zeros(rows, np.uint64)
    for column in columns:
        hashes = _mixed(hashes * np.uint64(31) + _hashes(column))
    return hashes


def _hashes_without_nulls(columns: Sequence[pa.Array], rows: int) -> Hashes:
    """Return a hash of each row by its values and their positions; nulls count as if there was no column.

    So a repeated epoch is recognized although its source has got a column since, which is null in its rows.
    """
    sums = np.zeros(rows, np.uint64)
    for position, column in enumerate(columns, 1):
        hashes = _mixed(_hashes(column) + np.uint64(position * int(_MIX) % 2**64))
        if column.null_count:
            hashes = np.where(_numpy(column.is_null()), np.uint64(0), hashes)
        sums += hashes
    return _mixed(sums + _NULL)


def _mixed(values: Hashes) -> Hashes:
    mixed = (values ^ (values >> _SHIFT)) * _MIX
    return mixed ^ (mixed >> _SHIFT)


def _hashes(array: pa.Array) -> Hashes:
    """Return a hash of each value; nulls have one of their own, at any depth."""
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        return _hashes(array.storage)
    if pa.types.is_map(kind):
        entries = pa.struct([kind.key_field, kind.item_field])
        array = array.cast(pa.list_(pa.field("entries", entries, nullable=False)))
        kind = array.type
    if pa.types.is_struct(kind):
        hashes = row_hashes(array.flatten(), len(array))
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        hashes = _list_hashes(array)
    elif pa.types.is_fixed_size_list(kind):
        hashes = _list_hashes(array.cast(pa.list_(kind.value_field)))
    else:
        hashes = _value_hashes(array)
    if array.null_count:
        hashes = np.where(_numpy(array.is_null()), _NULL, hashes)
    return hashes


def _list_hashes(array: Any) -> Hashes:
    """Return the hash of each list, of its values with their positions."""
    lengths = np.diff(_numpy(array.offsets)).astype(np.int64)
    lengths[_numpy(array.is_null())] = 0  # `flatten` leaves their values out
    ends = np.cumsum(lengths)
    positions = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - lengths, lengths)
    values = _mixed(_hashes(array.flatten()) + positions.astype(np.uint64) * _MIX)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(values, dtype=np.uint64)])
    return _mixed(sums[ends] - sums[ends - lengths] + lengths.astype(np.uint64))


def _value_hashes(array: pa.Array) -> Hashes:
    kind = array.type
    if pa.types.is_null(kind):
        return np.zeros(len(array), np.uint64)
    if pa.types.is_decimal(kind):
        array = array.cast(pa.string())
    elif pa.types.is_fixed_size_binary(kind):
        array = array.cast(pa.binary())
    elif pa.types.is_dictionary(kind):
        return _hashes(array.dictionary_decode())
    return _mixed(_text_values(array) if _is_text(array.type) else _number_values(array))


def _is_text(kind: pa.DataType) -> bool:
    return kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())


def _text_values(array: pa.Array) -> Hashes:
    empty = "" if array.type in (pa.string(), pa.large_string()) else b""
    hashed: Hashes = pd.util.hash_array(_numpy(array.fill_null(empty)), categorize=False)
    return hashed


def _number_values(array: pa.Array) -> Hashes:
    kind = array.type
    if pa.types.is_floating(kind):
        return _numpy(array.cast(pa.float64()).fill_null(0.0)).view(np.uint64)
    if pa.types.is_uint64(kind):
        return _numpy(array.fill_null(0))
    width = pa.int32() if kind in _NARROW else pa.int64()
    numbers = array.cast(pa.int8() if pa.types.is_boolean(kind) else width)
    return _numpy(numbers.fill_null(0)).astype(np.int64).view(np.uint64)


def _numpy(array: pa.Array) -> npt.NDArray[Any]:
    values: npt.NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return values


DIGESTED_COLUMNS = "digest long"
"""The column of the result of `digest_task`, as Spark DDL."""

PREFIX = "rows:"
"""Begins the text of a digest, which other fingerprints don't."""


@dataclass(slots=True)
class RowDigest:
    """The digest of the rows that pass through it; 0 if there are none."""

    value: int = 0

    def over(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches, and add their rows to the digest."""
        for batch in batches:
            self.add(batch)
            yield batch

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows to the digest."""
        hashes = _hashes_without_nulls(batch.columns, batch.num_rows)
        self.value = _signed(self.value + int(hashes.sum(dtype=np.uint64)))


def digest_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Digest a partition, for Spark's `mapInArrow`; see `DIGESTED_COLUMNS`."""
    digest = RowDigest()
    for batch in batches:
        digest.add(batch)
    yield pa.RecordBatch.from_pydict({"digest": [digest.value]})


def combined_digest(digests: Iterable[int]) -> str:
    """Return the digest of the rows of several tasks, as text."""
    return f"{PREFIX}{sum(digests) % 2**64:016x}"


def _signed(value: int) -> int:
    """Return the lowest 64 bits as Spark's long."""
    return (value + 2**63) % 2**64 - 2**63
