"""Columns of blobs: their type, and the values that Spark and files have for them.

A row has the bytes of a blob, the URI of a file that contains it, or a reference, which is a range of such a
file. Lance stores URIs as they are: nothing is read from the files when a row is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.locations import is_local, location_fault, normalize

FORMAT = "2.2"
"""The first file format of Lance that has blobs by reference."""
REFERENCE = pa.struct([("uri", pa.string()), ("position", pa.int64()), ("size", pa.int64())])
"""How Spark has a reference. Of a blob whose bytes the table has, only the size isn't null."""

_EXTENSION = "lance.blob.v2"
_TEXT = (pa.string(), pa.large_string(), pa.string_view())
_BYTES = (pa.binary(), pa.large_binary(), pa.binary_view())


def is_blob(arrow: pa.DataType) -> bool:
    """Return whether a type is that of a blob column."""
    return isinstance(arrow, pa.BaseExtensionType) and arrow.extension_name == _EXTENSION


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
    found = (below if is_blob(one) else inner_blob(one, below) for one, below in inner)
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
        ValueError: a value isn't valid; the message names the column.
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


def as_blob_uri(value: str, name: str) -> str:
    """Return a URI as Lance takes it: local paths are quoted, Hadoop's schemes of S3 replaced.

    Raises:
        ValueError: it is empty or relative, or contains credentials; the message names the column.
    """
    if (fault := location_fault(value, of_table=False)) is not None:
        raise ValueError(f"column {name}: expected the URI of a file, or null, but {fault}")
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
        f"column {name}: a reference without a URI; the bytes of a blob that a table has are read with "
        f"blobs={{{name!r}: 'all'}}",
    )
    _refuse(
        pc.and_(column.is_valid(), pc.xor(position.is_null(), size.is_null())),
        f"column {name}: a reference with only one of position and size; set both, or neither",
    )
    invalid = pc.or_(pc.less(position, 0), pc.less(size, 1))
    _refuse(invalid, f"column {name}: expected a position of at least 0 and a size of at least 1 byte")
    return data, uris, [part.cast(pa.uint64()) for part in (position, size)]


def _child(column: pa.Array, name: str, arrow: pa.DataType) -> pa.Array:
    index = column.type.get_field_index(name)
    if index < 0:
        return pa.nulls(len(column), arrow)
    # Unlike `field`, this has the nulls of the struct too.
    return column.flatten()[index].cast(arrow)


def _uris(column: pa.Array, name: str) -> pa.Array:
    values = column.to_pylist()
    return pa.array([value if value is None else as_blob_uri(value, name) for value in values], pa.string())


def _refuse(invalid: pa.Array, message: str) -> None:
    if pc.any(invalid).as_py():
        raise ValueError(message)


def _type() -> pa.DataType:
    from lance.blob import BlobType

    return BlobType()


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())
