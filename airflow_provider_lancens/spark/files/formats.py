"""What each file format knows: the schema of a file, the pieces it can be read in, and their rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

BATCH_BYTES = 16 * 1024 * 1024
"""What a batch should come to at most; Lance and Arrow hold a few of them at a time."""
_MOST_ROWS = 64 * 1024
_AT_ONCE = 64 * 1024 * 1024
"""A row group up to this size is fetched as a whole, a larger one bit by bit."""
_BIT = 4 * 1024 * 1024


class Piece(NamedTuple):
    """A part of a file that can be read without the rest."""

    number: int
    bytes: int


WHOLE = Piece(0, 0)
"""The one piece of a file that can't be cut; its size is the file's."""


class Inspected(NamedTuple):
    """What a look at a file told, without reading its rows."""

    schema: pa.Schema
    pieces: list[Piece]


class Wanted(NamedTuple):
    """What is wanted of the pieces."""

    columns: Sequence[str]
    schema: pa.Schema
    """What all the files have."""
    condition: pc.Expression | None


class FileFormat(Protocol):
    """A file format; it pickles."""

    @property
    def schema(self) -> pa.Schema | None:
        """What was given for files that bring none."""

    def inspect(self, file: pa.NativeFile) -> Inspected:
        """The schema and the pieces."""

    def read(self, file: pa.NativeFile, numbers: Sequence[int], wanted: Wanted) -> Iterator[pa.RecordBatch]:
        """The rows of some pieces in batches of bounded size, and perhaps rows that the condition refuses."""


class Parquet:
    """A piece is a row group."""

    schema = None

    def inspect(self, file: pa.NativeFile) -> Inspected:
        """See `FileFormat.inspect`."""
        reader = pq.ParquetFile(file)
        groups = [reader.metadata.row_group(number) for number in range(reader.num_row_groups)]
        pieces = [Piece(number, _stored_bytes(group)) for number, group in enumerate(groups)]
        return Inspected(reader.schema_arrow, pieces)

    def read(self, file: pa.NativeFile, numbers: Sequence[int], wanted: Wanted) -> Iterator[pa.RecordBatch]:
        """See `FileFormat.read`: the statistics tell which row groups can be left out."""
        fragment = ds.ParquetFileFormat().make_fragment(file, row_groups=numbers)
        if wanted.condition is not None:
            fragment = fragment.subset(wanted.condition)
        for found in fragment.row_groups:
            group = fragment.metadata.row_group(found.id)
            streamed = {} if _stored_bytes(group) <= _AT_ONCE else {"pre_buffer": False, "buffer_size": _BIT}
            # One row group after the other: a reader of several fetches them all at once.
            reader = pq.ParquetFile(file, metadata=fragment.metadata, **streamed)
            yield from reader.iter_batches(_batch_rows(group), [found.id], list(wanted.columns))


class ArrowFile:
    """A piece is a record batch."""

    schema = None

    def inspect(self, file: pa.NativeFile) -> Inspected:
        """See `FileFormat.inspect`."""
        reader = pa.ipc.open_file(file)
        count = reader.num_record_batches
        return Inspected(reader.schema, [Piece(number, file.size() // count) for number in range(count)])

    def read(self, file: pa.NativeFile, numbers: Sequence[int], wanted: Wanted) -> Iterator[pa.RecordBatch]:
        """See `FileFormat.read`: only the wanted columns are read."""
        names = pa.ipc.open_file(file).schema.names
        included = [index for index, name in enumerate(names) if name in wanted.columns]
        reader = pa.ipc.open_file(file, options=pa.ipc.IpcReadOptions(included_fields=included))
        for number in numbers:
            yield reader.get_batch(number)


def _stored_bytes(group: pq.RowGroupMetaData) -> int:
    return sum(group.column(i).total_compressed_size for i in range(group.num_columns))


def _batch_rows(group: pq.RowGroupMetaData) -> int:
    fitting = group.num_rows * BATCH_BYTES // max(group.total_byte_size, 1)
    return int(max(1, min(fitting, _MOST_ROWS)))
