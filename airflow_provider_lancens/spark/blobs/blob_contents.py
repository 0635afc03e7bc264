"""The contents of blobs: whole, or a range of each, in bounded memory. Runs on executors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.spark.blobs.blob_columns import REFERENCE, is_blob

if TYPE_CHECKING:
    from lance import LanceDataset
    from numpy.typing import NDArray

BlobRange: TypeAlias = "str | tuple[int, int]"
"""``all``, or the position of the first byte and the number of bytes."""
BATCH_BYTES = 32 * 1024 * 1024
"""Bound of the bytes that are read together; a larger blob is read alone."""
_BATCH_ROWS = 4096
_ADDRESS = "_rowaddr"
_EXTERNAL = 3
"""The kind of a blob that is a file, or a range of one, outside the table."""

_Numbers: TypeAlias = "NDArray[np.int64]"
CheckBlob: TypeAlias = "Callable[[str, int, str], None]"


@dataclass(frozen=True, slots=True)
class BlobReads:
    """What to read of the blob columns of a table. Picklable."""

    ranges: Mapping[str, BlobRange] = field(default_factory=dict)
    """What to read of the contents, by column."""
    references: tuple[str, ...] = ()
    """The columns to read as references."""

    @classmethod
    def of(cls, schema: pa.Schema, blobs: Mapping[str, BlobRange] | None) -> Self:
        """Return what to read of these columns.

        Args:
            schema: the columns to read.
            blobs: what to read of the contents, by column; the others are read as references.

        Raises:
            InvalidInputError: (13) a column isn't read, or has no blobs, or a range is invalid.
        """
        columns = [column.name for column in schema if is_blob(column.type)]
        for name, wanted in (blobs or {}).items():
            if name not in columns:
                raise spec_errors.InvalidInputError(
                    f"blobs: {name!r} isn't one of the blob columns to read: {columns or 'none'}"
                )
            _check_range(name, wanted)
        return cls(dict(blobs or {}), tuple(name for name in columns if name not in (blobs or {})))

    def schema(self, columns: pa.Schema) -> pa.Schema:
        """Return the columns with the types that these blobs are read as."""
        types = {**dict.fromkeys(self.references, REFERENCE), **dict.fromkeys(self.ranges, pa.binary())}
        return pa.schema([column.with_type(types.get(column.name, column.type)) for column in columns])

    def batches(
        self, dataset: LanceDataset, descriptors: Iterator[pa.RecordBatch], check: CheckBlob
    ) -> Iterator[pa.RecordBatch]:
        """Yield batches with contents and references in place of Lance's descriptors.

        Args:
            dataset: the opened version.
            descriptors: rows as Lance's scanner returns them, with their addresses if contents are read.
            check: called with the URI of each file that is about to be read, the id of the base that it is
                relative to, and the column.

        Raises:
            PermissionDeniedError: (15) such a file may not be read.
            InvalidTableStateError: (19) a file to which a row refers can't be read.
        """
        for batch in descriptors:
            for name in self.references:
                batch = _replaced(batch, name, references(batch.column(name)))
            for name in self.ranges:
                check_blobs(batch.column(name), name, check)
            yield from self._with_contents(dataset, batch) if self.ranges else (batch,)

    def _with_contents(self, dataset: LanceDataset, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        for start in range(0, batch.num_rows, _BATCH_ROWS):
            rows = batch.slice(start, _BATCH_ROWS)
            columns = {
                name: _Contents.of(dataset, name, rows, wanted) for name, wanted in self.ranges.items()
            }
            lengths = np.sum([column.lengths for column in columns.values()], axis=0)
            for first, end in _shares(lengths):
                piece = rows.slice(first, end - first)
                for name, column in columns.items():
                    piece = _replaced(piece, name, column.read(first, end))
                yield piece


NO_BLOBS = BlobReads()


@dataclass(frozen=True, slots=True)
class _Contents:
    """The contents of some rows of one column."""

    dataset: LanceDataset
    column: str
    addresses: _Numbers
    valid: NDArray[np.bool_]
    positions: _Numbers
    lengths: _Numbers
    """The number of bytes to read of each row."""

    @classmethod
    def of(cls, dataset: LanceDataset, column: str, rows: pa.RecordBatch, wanted: BlobRange) -> Self:
        descriptors = rows.column(column)
        addresses = rows.column(_ADDRESS).to_numpy().astype(np.int64)
        valid = descriptors.is_valid().to_numpy(zero_copy_only=False)
        sizes = _numbers(descriptors, "size")
        unknown = valid & (_numbers(descriptors, "kind") == _EXTERNAL) & (sizes == 0)
        sizes[unknown] = _external_sizes(dataset, column, addresses[unknown])
        first, length = (0, None) if isinstance(wanted, str) else wanted
        positions = np.minimum(first, sizes)
        rest = sizes - positions
        return cls(
            dataset=dataset,
            column=column,
            addresses=addresses,
            valid=valid,
            positions=positions,
            lengths=rest if length is None else np.minimum(rest, length),
        )

    def read(self, first: int, end: int) -> pa.Array:
        """Return the bytes of the rows from one to another."""
        values: list[bytes | None] = [b"" if valid else None for valid in self.valid[first:end]]
        filled = [row for row in range(first, end) if self.lengths[row]]
        requests = [(int(self.addresses[n]), int(self.positions[n]), int(self.lengths[n])) for n in filled]
        if requests:
            with _explained(self.column):
                found = self.dataset.read_blob_ranges(self.column, requests, selector="addresses")
            for number, _, value in found:
                values[filled[number] - first] = value
        return pa.array(values, pa.binary())


def check_blobs(descriptors: pa.Array, column: str, check: CheckBlob) -> None:
    """Check the files to which descriptors refer, before Lance opens them.

    Raises:
        PermissionDeniedError: (15) one may not be read.
    """
    uris = descriptors.field(descriptors.type.get_field_index("blob_uri")).cast(pa.string())
    bases = pa.array(_numbers(descriptors, "blob_id"), pa.int64())
    is_external = pa.array(_numbers(descriptors, "kind") == _EXTERNAL)
    files = pa.table({"uri": uris, "base": bases}).filter(pc.and_(is_external, descriptors.is_valid()))
    for uri, base in zip(*files.group_by(["uri", "base"]).aggregate([]).to_pydict().values(), strict=True):
        check(uri or "", base, column)


def references(descriptors: pa.Array) -> pa.Array:
    """Return references for Lance's descriptors; see `REFERENCE`."""
    is_external = _numbers(descriptors, "kind") == _EXTERNAL
    sizes, positions = _numbers(descriptors, "size"), _numbers(descriptors, "position")
    # Lance has a size of zero for a whole file: its size is unknown.
    has_range = is_external & (sizes > 0)
    uris = descriptors.field(descriptors.type.get_field_index("blob_uri"))
    parts = [
        pc.if_else(pa.array(is_external), uris.cast(pa.string()), None),
        pa.array(positions, pa.int64(), mask=~has_range),
        pa.array(sizes, pa.int64(), mask=is_external & ~has_range),
    ]
    return pa.StructArray.from_arrays(parts, fields=list(REFERENCE), mask=descriptors.is_null())


def _check_range(column: str, wanted: object) -> None:
    if wanted == "all":
        return
    numbers = isinstance(wanted, tuple | list) and len(wanted) == 2 and all(type(n) is int for n in wanted)
    if not numbers or wanted[0] < 0 or wanted[1] < 1:  # type: ignore[index]
        raise spec_errors.InvalidInputError(
            f"blobs[{column!r}]: expected 'all', or the first byte's position and the number of bytes, "
            f"such as (0, 65536); got {wanted!r}"
        )


def _replaced(batch: pa.RecordBatch, name: str, values: pa.Array) -> pa.RecordBatch:
    index = batch.schema.get_field_index(name)
    return batch.set_column(index, pa.field(name, values.type), values)


def _numbers(descriptors: pa.Array, part: str) -> _Numbers:
    values = descriptors.field(descriptors.type.get_field_index(part))
    numbers: _Numbers = values.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


def _external_sizes(dataset: LanceDataset, column: str, addresses: _Numbers) -> _Numbers:
    if not len(addresses):
        return addresses
    with _explained(column):
        files = dataset.take_blobs(column, addresses=addresses.tolist(), buffer_size=0)
    return np.fromiter((0 if file is None else file.size() for file in files), np.int64, len(files))


@contextmanager
def _explained(column: str) -> Iterator[None]:
    """Say which file is missing that a row refers to."""
    try:
        yield
    except ValueError as error:
        if "Not found" not in str(error):
            raise
        raise spec_errors.InvalidTableStateError(
            f"column {column}: a row refers to a file that does not exist; restore it, delete the row, or "
            f"read the column as references ({error})"
        ) from error


def _shares(lengths: _Numbers) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows whose bytes together are bounded."""
    start = total = 0
    for row, length in enumerate(lengths.tolist()):
        if row > start and total + length > BATCH_BYTES:
            yield start, row
            start, total = row, 0
        total += length
    if start < len(lengths):
        yield start, len(lengths)
