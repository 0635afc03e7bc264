"""The values of a column for all rows of a fragment: computed ones, kept ones, and nulls for deleted rows.

Both are read in the order of the rows and merged, so that a task holds some batches of them, and never the
values of the whole fragment. Of the columns that the function needs, only the rows to compute are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from airflow_provider_lancens.spark.blobs.blob_columns import is_blob
from airflow_provider_lancens.spark.blobs.blob_contents import CheckBlob, check_blobs

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance.fragment import LanceFragment
    from numpy.typing import NDArray

_ADDRESS = "_rowaddr"
_OFFSET_MASK = 0xFFFFFFFF
"""The part of a row's address that is its position in the fragment."""
_READ_AHEAD = 2
_IO_BUFFER = 256 * 1024 * 1024
"""Lance's default of 2 GB is meant for one scan on a machine, not for one in each task."""

Offsets: TypeAlias = "NDArray[np.int64]"
Piece: TypeAlias = tuple[Offsets, pa.Array]
"""Positions of rows in the fragment, ascending, and their values."""


@dataclass(slots=True)
class FragmentValues:
    """The values of one fragment."""

    dataset: LanceDataset
    fragment: LanceFragment
    column: pa.Field
    function: Callable[[pa.RecordBatch], pa.Array]
    """Returns the values of the rows of a batch, of the column's type."""
    inputs: Sequence[str]
    """The columns that the function gets."""
    condition: str | None
    """Which rows to compute; None computes all. The others keep their values."""
    batch_rows: int
    check_blob: CheckBlob
    """Called for each file that a row refers to, see `DatasetRef.blob_check`."""
    offsets: list[Offsets] = field(default_factory=list)
    """The positions of the computed rows."""
    nulls: int = 0
    """How many rows have no value."""

    @property
    def rows(self) -> int:
        """The number of computed rows so far."""
        return sum(map(len, self.offsets))

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the values in the order of the rows, those of deleted rows as nulls."""
        pieces = self._computed() if self.condition is None else merged(self._kept(), self._computed())
        rows = self.fragment.physical_rows
        for values in padded(self._counted(pieces), self.column.type, rows, self.batch_rows):
            yield pa.RecordBatch.from_arrays([values], schema=schema)

    def _computed(self) -> Iterator[Piece]:
        for batch in self._scan(self.inputs, self.condition):
            if not batch.num_rows:
                continue
            positions = _positions(batch)
            values = self.function(batch.select(list(self.inputs)))
            self.offsets.append(positions)
            yield positions, values

    def _kept(self) -> Iterator[Piece]:
        for batch in self._scan([self.column.name], None):
            if batch.num_rows:
                yield _positions(batch), batch.column(self.column.name)

    def _counted(self, pieces: Iterator[Piece]) -> Iterator[Piece]:
        for piece in pieces:
            self.nulls += piece[1].null_count
            yield piece

    def _check_blobs(self, columns: Sequence[str]) -> None:
        blobs = [name for name in columns if is_blob(self.dataset.schema.field(name).type)]
        if not blobs:
            return
        for batch in self.dataset.scanner(columns=blobs, fragments=[self.fragment]).to_batches():
            for name in blobs:
                check_blobs(batch.column(name), name, self.check_blob)

    def _scan(self, columns: Sequence[str], condition: str | None) -> Iterator[pa.RecordBatch]:
        self._check_blobs(columns)
        scanner = self.dataset.scanner(
            columns=list(columns),
            filter=condition,
            fragments=[self.fragment],
            with_row_address=True,
            batch_size=self.batch_rows,
            batch_readahead=_READ_AHEAD,
            io_buffer_size=_IO_BUFFER,
            scan_in_order=True,
            use_scalar_index=False,  # would find rows in the index's order
            blob_handling="all_binary",
        )
        yield from scanner.to_batches()


def merged(kept: Iterator[Piece], computed: Iterator[Piece]) -> Iterator[Piece]:
    """Replace values of rows by computed ones.

    Args:
        kept: the values of all rows.
        computed: those of some of these rows.
    """
    waiting: Piece | None = next(computed, None)
    for offsets, values in kept:
        found: list[Piece] = []
        while waiting is not None and waiting[0][0] <= offsets[-1]:
            count = int(np.searchsorted(waiting[0], offsets[-1], side="right"))
            found.append((waiting[0][:count], waiting[1].slice(0, count)))
            rest = (waiting[0][count:], waiting[1].slice(count))
            waiting = rest if len(rest[0]) else next(computed, None)
        yield offsets, _replaced(offsets, values, found)


def _replaced(offsets: Offsets, values: pa.Array, found: Sequence[Piece]) -> pa.Array:
    if not found:
        return values
    chosen = np.arange(len(offsets))
    positions = np.concatenate([piece[0] for piece in found])
    chosen[np.searchsorted(offsets, positions)] = len(offsets) + np.arange(len(positions))
    return pa.concat_arrays([values, *(piece[1] for piece in found)]).take(pa.array(chosen))


def padded(pieces: Iterator[Piece], arrow: pa.DataType, rows: int, step: int) -> Iterator[pa.Array]:
    """Yield the values of consecutive rows, with nulls in the gaps.

    Args:
        pieces: values of some rows.
        arrow: their type.
        rows: the number of all rows.
        step: the maximum length of an array.
    """
    start = 0
    for offsets, values in pieces:
        while start <= offsets[-1]:
            end = min(start + step, int(offsets[-1]) + 1)
            first, last = (int(at) for at in np.searchsorted(offsets, [start, end]))
            yield _spread(values.slice(first, last - first), offsets[first:last] - start, end - start)
            start = end
    for begin in range(start, rows, step):
        yield pa.nulls(min(step, rows - begin), arrow)


def _spread(values: pa.Array, at: Offsets, length: int) -> pa.Array:
    if len(values) == length:
        return values
    chosen = np.full(length, -1)
    chosen[at] = np.arange(len(values))
    return values.take(pa.array(chosen, mask=chosen < 0))


def _positions(batch: pa.RecordBatch) -> Offsets:
    addresses = batch.column(_ADDRESS).to_numpy()
    positions: Offsets = (addresses & np.uint64(_OFFSET_MASK)).astype(np.int64)
    return positions
