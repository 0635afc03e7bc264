"""File formats: the schema of a file, its pieces that can be read separately, and their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

BATCH_BYTES = 16 * 1024 * 1024
"""Target maximum size of a batch; Lance and Arrow hold a few of them at a time."""
Open: TypeAlias = "Callable[[], AbstractContextManager[pa.NativeFile]]"
"""Opens a file from its beginning."""


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


NO_ROWS = InspectedFile(pa.schema([]), [])
"""A text file without content, such as a compressed empty one, whose columns are unknown."""


class ScanRequest(NamedTuple):
    """What to read of the pieces."""

    columns: Sequence[str]
    schema: pa.Schema
    """The common schema of all files."""
    condition: pc.Expression | None
    """A condition that all wanted rows match; others may be returned too."""
    condition_columns: frozenset[str] = frozenset()
    folder: pc.Expression | None = None
    """A condition that all rows of the file match by the names of its folders."""
    all_columns: pa.Schema | None = None
    """The columns that the condition may refer to: the files' and their folders' columns."""


class FileRowsBatch(NamedTuple):
    """Rows of a file, and where they are in it."""

    rows: pa.RecordBatch
    start: int
    """The number of rows before, in the file or the named piece."""
    piece: str = ""
    """The piece, for messages."""


class FileFormat(Protocol):
    """A file format. Picklable."""

    @property
    def schema(self) -> pa.Schema | None:
        """The given schema, for files that have none."""

    def inspect(self, opened: Open) -> InspectedFile:
        """Return the schema and the pieces.

        Raises:
            RowError: a value of a row is invalid.
        """

    def read(self, opened: Open, numbers: Sequence[int], wanted: ScanRequest) -> Iterator[FileRowsBatch]:
        """Yield the rows of pieces in bounded batches, possibly with rows that don't match the condition.

        Raises:
            RowError: a value of a row is invalid, or would lose digits.
        """


class ArrowFile:
    """A piece is a record batch."""

    schema = None

    def inspect(self, opened: Open) -> InspectedFile:
        """See `FileFormat.inspect`."""
        with opened() as file:
            reader = pa.ipc.open_file(file)
            count = reader.num_record_batches
            pieces = [FilePiece(number, file.size() // count) for number in range(count)]
            return InspectedFile(reader.schema, pieces)

    def read(self, opened: Open, numbers: Sequence[int], wanted: ScanRequest) -> Iterator[FileRowsBatch]:
        """See `FileFormat.read`: only the wanted columns are read."""
        with opened() as file:
            names = pa.ipc.open_file(file).schema.names
            columns = frozenset(wanted.columns)
            included = [index for index, name in enumerate(names) if name in columns]
            reader = pa.ipc.open_file(file, options=pa.ipc.IpcReadOptions(included_fields=included))
            for number in numbers:
                yield FileRowsBatch(reader.get_batch(number), 0, f"record batch {number + 1}, ")
