"""File formats: the schema of a file, the pieces it can be read in, and their rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

BATCH_BYTES = 16 * 1024 * 1024
"""Target maximum size of a batch; Lance and Arrow hold a few of them at a time."""
_MAX_ROWS = 64 * 1024
_MAX_BUFFERED = 64 * 1024 * 1024
"""A row group up to this size is fetched as a whole, a larger one is streamed."""
_BUFFER = 4 * 1024 * 1024


class FilePiece(NamedTuple):
    """A part of a file that can be read independently."""

    number: int
    bytes: int


WHOLE = FilePiece(0, 0)
"""The only piece of a file that cannot be split; its size is the file's."""


class InspectedFile(NamedTuple):
    """Metadata of a file, read without its rows."""

    schema: pa.Schema
    pieces: list[FilePiece]


class ScanRequest(NamedTuple):
    """What to read of the pieces."""

    columns: Sequence[str]
    schema: pa.Schema
    """The common schema of all files."""
    condition: pc.Expression | None


class FileFormat(Protocol):
    """A file format. Picklable."""

    @property
    def schema(self) -> pa.Schema | None:
        """The given schema, for files that have none."""

    def inspect(self, file: pa.NativeFile) -> InspectedFile:
        """Return the schema and the pieces."""

    def read(
        self, file: pa.NativeFile, numbers: Sequence[int], wanted: ScanRequest
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of pieces in bounded batches, possibly with rows that don't match the condition."""


class Parquet:
    """A piece is a row group."""

    schema = None

    def inspect(self, file: pa.NativeFile) -> InspectedFile:
        """See `FileFormat.inspect`."""
        reader = pq.ParquetFile(file)
        groups = [reader.metadata.row_group(number) for number in range(reader.num_row_groups)]
        pieces = [FilePiece(number, _stored_bytes(group)) for number, group in enumerate(groups)]
        return InspectedFile(reader.schema_arrow, pieces)

    def read(
        self, file: pa.NativeFile, numbers: Sequence[int], wanted: ScanRequest
    ) -> Iterator[pa.RecordBatch]:
        """See `FileFormat.read`: row groups are skipped by their statistics."""
        fragment = ds.ParquetFileFormat().make_fragment(file, row_groups=numbers)
        if wanted.condition is not None:
            fragment = fragment.subset(wanted.condition)
        for found in fragment.row_groups:
            group = fragment.metadata.row_group(found.id)
            large = _stored_bytes(group) > _MAX_BUFFERED
            streamed = {"pre_buffer": False, "buffer_size": _BUFFER} if large else {}
            # One row group after the other: a reader of several fetches them all at once.
            reader = pq.ParquetFile(file, metadata=fragment.metadata, **streamed)
            yield from reader.iter_batches(_batch_rows(group), [found.id], list(wanted.columns))


class ArrowFile:
    """A piece is a record batch."""

    schema = None

    def inspect(self, file: pa.NativeFile) -> InspectedFile:
        """See `FileFormat.inspect`."""
        reader = pa.ipc.open_file(file)
        count = reader.num_record_batches
        return InspectedFile(
            reader.schema, [FilePiece(number, file.size() // count) for number in range(count)]
        )

    def read(
        self, file: pa.NativeFile, numbers: Sequence[int], wanted: ScanRequest
    ) -> Iterator[pa.RecordBatch]:
        """See `FileFormat.read`: only the wanted columns are read."""
        names = pa.ipc.open_file(file).schema.names
        columns = frozenset(wanted.columns)
        included = [index for index, name in enumerate(names) if name in columns]
        reader = pa.ipc.open_file(file, options=pa.ipc.IpcReadOptions(included_fields=included))
        for number in numbers:
            yield reader.get_batch(number)


def _stored_bytes(group: pq.RowGroupMetaData) -> int:
    return sum(group.column(i).total_compressed_size for i in range(group.num_columns))


def _batch_rows(group: pq.RowGroupMetaData) -> int:
    fitting = group.num_rows * BATCH_BYTES // max(group.total_byte_size, 1)
    return int(max(1, min(fitting, _MAX_ROWS)))
