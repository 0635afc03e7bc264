"""Blob columns: which columns have them, and reads of their contents or of references to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self, TypeAlias
from urllib.parse import quote, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.locations import is_local, location_fault, normalize
from airflow_provider_lancens.namespace.row_errors import RowError
from airflow_provider_lancens.namespace.system_columns import ROW_ADDRESS

if TYPE_CHECKING:
    from lance import LanceDataset
    from numpy.typing import NDArray


FORMAT = "2.2"
"""The first file format of Lance that has blobs by reference."""
REFERENCE = pa.struct([("uri", pa.string()), ("position", pa.int64()), ("size", pa.int64())])
"""How Spark has a reference. Of a blob whose bytes the table has, only the size isn't null."""

_EXTENSION = "lance.blob.v2"
_TEXT = (pa.string(), pa.large_string(), pa.string_view())
_BYTES = (pa.binary(), pa.large_binary(), pa.binary_view())


def is_blob(arrow: pa.DataType) -> bool:
    """Return whether a type is the type of a blob column."""
    return isinstance(arrow, pa.BaseExtensionType) and arrow.extension_name == _EXTENSION


def is_old_blob(field: pa.Field) -> bool:
    """Return whether a column is a blob column of a file format before 2.2, which other writers can create.

    Its type in the schema is binary, but a scan by Lance returns the positions of the bytes, not the bytes.
    """
    return b"lance-encoding:blob" in (field.metadata or {})


def is_any_blob(field: pa.Field) -> bool:
    """Return whether a column is a blob column, of any file format."""
    return is_blob(field.type) or is_old_blob(field)


def inner_blob(arrow: pa.DataType, path: str) -> str | None:
    """Return the path of the first blob within a struct, an array or a map; None if there is none.

    Other writers can create such a column. It has no bytes and no references for Spark.

    Args:
        arrow: the column's type.
        path: the column's name.
    """
    if pa.types.is_struct(arrow):
        inner = [(arrow.field(i).type, f"{path}.{arrow.field(i).name}") for i in range(arrow.num_fields)]
    elif pa.types.is_map(arrow):
        inner = [(arrow.key_type, f"{path}.key"), (arrow.item_type, f"{path}.value")]
    elif pa.types.is_nested(arrow):
        inner = [(arrow.value_type, f"{path}[]")]
    else:
        inner = []
    found = (below if is_blob(inner_type) else inner_blob(inner_type, below) for inner_type, below in inner)
    return next(filter(None, found), None)


def with_blobs(schema: pa.Schema, columns: Sequence[str]) -> pa.Schema:
    """Return the schema with these columns as blobs.

    Raises:
        InvalidInputError: (13) there is no such column, or its type has no blobs.
    """
    for name in columns:
        if name not in schema.names:
            raise spec_errors.InvalidInputError(
                f"blob_columns: the rows have no column {name!r}; columns: {schema.names}"
            )
        if not fits_blob(found := schema.field(name).type):
            raise spec_errors.InvalidInputError(
                f"blob_columns: column {name!r} is {found}; expected binary (the bytes), string (the URI of "
                "a file), or struct<uri: string, position: bigint, size: bigint> (a range of a file)"
            )
    return pa.schema([field.with_type(_type()) if field.name in columns else field for field in schema])


def check_format(schema: pa.Schema, data_storage_version: str | None, argument: str) -> str | None:
    """Return the file format for a new dataset of these columns.

    Args:
        schema: the columns.
        data_storage_version: the format that is requested; None is Lance's default.
        argument: where that was requested, for a message.

    Raises:
        InvalidInputError: (13) the format has no blobs, but the schema does.
    """
    blobs = [field.name for field in schema if is_blob(field.type)]
    if not blobs:
        return data_storage_version
    if data_storage_version is None:
        return FORMAT
    if _number(data_storage_version) < _number(FORMAT):
        raise spec_errors.InvalidInputError(
            f"{argument}: expected {FORMAT} or newer for the blob column {blobs[0]!r}, "
            f"got {data_storage_version!r}"
        )
    return data_storage_version


def fits_blob(source: pa.DataType) -> bool:
    """Return whether a column of rows can be stored as blobs."""
    if is_blob(source) or pa.types.is_null(source) or source in (*_TEXT, *_BYTES):
        return True
    names = {field.name for field in source} if pa.types.is_struct(source) else set()
    return "uri" in names and names <= {"data", "uri", "position", "size"}


def blob_array(column: pa.Array, name: str) -> pa.Array:
    """Return the values of a column as Lance takes blobs. Runs on executors.

    Args:
        column: bytes, URIs or references.
        name: the column's name, for messages.

    Raises:
        RowError: a value isn't valid.
    """
    count, is_null = len(column), column.is_null()
    data, uris = pa.nulls(count, pa.large_binary()), pa.nulls(count, pa.string())
    ranges = [pa.nulls(count, pa.uint64())] * 2
    if column.type in _BYTES:
        data = column.cast(pa.large_binary())
    elif column.type in _TEXT:
        uris = _uris(column, name)
    elif pa.types.is_struct(column.type):
        data, uris, ranges = _referenced(column, name)
    storage = pa.StructArray.from_arrays(
        [data, uris, *ranges], fields=list(_type().storage_type), mask=is_null
    )
    return pa.ExtensionArray.from_storage(_type(), storage)


def _blob_uri(value: str) -> str:
    """Return a URI as Lance takes it: local paths are quoted, Hadoop's schemes of S3 replaced."""
    if is_local(value) and not value.startswith("file:"):
        return f"file://{quote(value)}"
    location = normalize(value)
    return location if urlsplit(location).scheme else value


def _referenced(column: pa.Array, name: str) -> tuple[pa.Array, pa.Array, list[pa.Array]]:
    data = _child(column, "data", pa.large_binary())
    uris = _uris(_child(column, "uri", pa.string()), name)
    position, size = (_child(column, part, pa.int64()) for part in ("position", "size"))
    _refuse(
        pc.and_(pc.and_(uris.is_null(), data.is_null()), column.is_valid()),
        name,
        "a reference without a URI; the bytes of a blob that a table has are read with "
        f"blobs={{{name!r}: 'all'}}",
    )
    _refuse(
        pc.and_(column.is_valid(), pc.xor(position.is_null(), size.is_null())),
        name,
        "a reference with only one of position and size; set both, or neither",
    )
    invalid = pc.or_(pc.less(position, 0), pc.less(size, 1))
    _refuse(invalid, name, "expected a position of at least 0 and a size of at least 1 byte")
    return data, uris, [part.cast(pa.uint64()) for part in (position, size)]


def _child(column: pa.Array, name: str, arrow: pa.DataType) -> pa.Array:
    index = column.type.get_field_index(name)
    if index < 0:
        return pa.nulls(len(column), arrow)
    # Unlike `field`, `flatten` also applies the nulls of the struct.
    return column.flatten()[index].cast(arrow)


def _uris(column: pa.Array, name: str) -> pa.Array:
    values = column.to_pylist()
    for row, value in enumerate(values):
        if value is not None and (fault := location_fault(value, of_table=False)) is not None:
            raise RowError(row, name, f"expected the URI of a file, or null, but {fault}")
    return pa.array([value if value is None else _blob_uri(value) for value in values], pa.string())


def _refuse(invalid: pa.Array, name: str, reason: str) -> None:
    if (row := pc.index(invalid, True).as_py()) >= 0:
        raise RowError(row, name, reason)


def _type() -> pa.DataType:
    from lance.blob import BlobType

    return BlobType()


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


BlobRange: TypeAlias = "str | tuple[int, int]"
"""``all``, or the position of the first byte and the number of bytes."""
BATCH_BYTES = 32 * 1024 * 1024
"""Bound of the bytes that are read together; a larger blob is read alone."""
_BATCH_ROWS = 4096
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
        addresses = rows.column(ROW_ADDRESS).to_numpy().astype(np.int64)
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
    # For a whole file, Lance stores a size of zero, since the size is unknown.
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
