"""Parquet files: row groups, and values that mean the same as to Spark."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from airflow_provider_lancens.namespace.row_errors import RowError, first_row
from airflow_provider_lancens.spark.write.files.calendars import (
    NEW,
    Calendar,
    Calendars,
    calendars_of,
    in_new_calendar,
)
from airflow_provider_lancens.spark.write.files.formats import (
    BATCH_BYTES,
    FilePiece,
    FileRowsBatch,
    InspectedFile,
    Open,
    ScanRequest,
)
from airflow_provider_lancens.spark.write.value_casts import flattened, shown

_MAX_ROWS = 64 * 1024
_MAX_BUFFERED = 64 * 1024 * 1024
"""A row group up to this size is fetched as a whole, a larger one is streamed."""
_BUFFER = 4 * 1024 * 1024
_INT96 = "INT96"
_INT96_UNIT = "us"
"""Spark's. With Arrow's own, nanoseconds, times outside of 1677 to 2262 become others."""


class Parquet:
    """A piece is a row group."""

    schema = None

    def inspect(self, opened: Open) -> InspectedFile:
        """See `FileFormat.inspect`."""
        with opened() as file:
            reader = _open(file)
            groups = [reader.metadata.row_group(number) for number in range(reader.num_row_groups)]
            pieces = [FilePiece(number, _stored_bytes(group)) for number, group in enumerate(groups)]
            return InspectedFile(_columns(reader).schema, pieces)

    def read(self, opened: Open, numbers: Sequence[int], wanted: ScanRequest) -> Iterator[FileRowsBatch]:
        """See `FileFormat.read`: row groups are skipped by their statistics."""
        with opened() as file:
            metadata = pq.read_metadata(file)
            columns = _columns(_open(file, metadata=metadata))
            starts = [
                0,
                *itertools.accumulate(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)),
            ]
            for number in _matching_groups(file, numbers, wanted, columns):
                group = metadata.row_group(number)
                start = starts[number]
                large = _stored_bytes(group) > _MAX_BUFFERED
                streamed = {"pre_buffer": False, "buffer_size": _BUFFER} if large else {}
                # One row group after the other: a reader of several fetches them all at once.
                reader = _open(file, metadata=metadata, **streamed)
                finer = _nanoseconds(
                    file, metadata, number, columns.unchecked(wanted.columns), _batch_rows(group)
                )
                for batch in reader.iter_batches(_batch_rows(group), [number], list(wanted.columns)):
                    try:
                        columns.check_precision(batch, next(finer))
                        rows = columns.converted(batch)
                    except RowError as error:
                        raise error.at(start) from None
                    yield FileRowsBatch(rows, start)
                    start += batch.num_rows


class _Columns:
    """The columns of a file as Spark understands them."""

    def __init__(
        self, schema: pa.Schema, leaves: dict[str, list[str]], calendars: Calendars, exact: bool
    ) -> None:
        self.schema, self._leaves, self._calendars, self._exact = schema, leaves, calendars, exact

    def is_plain(self, name: str) -> bool:
        """Return whether Arrow's values and statistics of a column are the converted ones."""
        return not any(self._leaves[name]) and (
            all(calendar == NEW for calendar in self._calendars)
            or not pa.types.is_temporal(self.schema.field(name).type)
        )

    def converted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows with the time zones and in the calendar that the file means.

        Raises:
            RowError: the calendar of a value isn't known.
        """
        fields = [self.schema.field(name) for name in batch.schema.names]
        arrays = [self._converted(batch.column(i), field) for i, field in enumerate(fields)]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    def unchecked(self, names: Sequence[str]) -> list[str]:
        """Return the columns whose times may have nanoseconds, which must be read in addition."""
        return [] if self._exact else [name for name in names if _INT96 in self._leaves[name]]

    def check_precision(self, batch: pa.RecordBatch, finer: pa.RecordBatch | None) -> None:
        """Check that no time has nanoseconds.

        Args:
            batch: rows, with times in microseconds.
            finer: the same rows with nanoseconds, modulo 2**64; None if none can have any.

        Raises:
            RowError: one has.
        """
        if finer is None:
            return
        for name in finer.schema.names:
            pairs = pa.StructArray.from_arrays([batch.column(name), finer.column(name)], ["coarse", "fine"])
            if _has_nanoseconds(pairs):
                row = first_row(pairs, _has_nanoseconds)
                raise RowError(
                    row,
                    name,
                    f"{shown(finer.column(name)[row])}: nanoseconds of an INT96 time, which Spark cuts. Read "
                    "the file as a DataFrame if they may be lost",
                )

    def _converted(self, column: pa.Array, field: pa.Field) -> pa.Array:
        if any(self._leaves[field.name]):
            column = column.cast(field.type)
        return in_new_calendar(column, self._of(field.name), field.name)

    def _of(self, name: str) -> list[Calendar]:
        dates, int96 = self._calendars
        return [int96 if kind == _INT96 else dates for kind in self._leaves[name]]


def _open(file: pa.NativeFile, **options: Any) -> pq.ParquetFile:
    return pq.ParquetFile(file, coerce_int96_timestamp_unit=_INT96_UNIT, **options)


def _columns(reader: pq.ParquetFile) -> _Columns:
    kinds = iter([_kind(reader.schema.column(i)) for i in range(len(reader.schema))])
    schema = []
    leaves: dict[str, list[str]] = {}
    for field in reader.schema_arrow:
        found: list[str] = []
        leaves[field.name] = found
        schema.append(field.with_type(_meant(field.type, kinds, found)))
    exact = b"org.apache.spark.version" in (reader.metadata.metadata or {})
    return _Columns(pa.schema(schema), leaves, calendars_of(reader.metadata), exact)


def _kind(column: pq.ColumnSchema) -> str:
    """Return how times of a leaf differ from Arrow's: they are moments, though Arrow reads no time zone."""
    if column.physical_type == _INT96:
        return _INT96
    logical = json.loads(column.logical_type.to_json())
    return "converted" if logical["Type"] == "Timestamp" and logical["is_from_converted_type"] else ""


def _meant(arrow: pa.DataType, kinds: Iterator[str], found: list[str]) -> pa.DataType:
    """Return the type that a file means, and collect the kinds of its leaves."""
    if isinstance(arrow, pa.BaseExtensionType):
        _meant(arrow.storage_type, kinds, found)
        return arrow
    if pa.types.is_struct(arrow):
        fields = [arrow.field(index) for index in range(arrow.num_fields)]
        return pa.struct([field.with_type(_meant(field.type, kinds, found)) for field in fields])
    if pa.types.is_map(arrow):
        key = arrow.key_field.with_type(_meant(arrow.key_type, kinds, found))
        return pa.map_(key, arrow.item_field.with_type(_meant(arrow.item_type, kinds, found)))
    if pa.types.is_nested(arrow):
        inner = _meant(arrow.value_type, kinds, found)
        if inner == arrow.value_type:
            return arrow
        value = arrow.value_field.with_type(inner)
        if pa.types.is_fixed_size_list(arrow):
            return pa.list_(value, arrow.list_size)
        return pa.large_list(value) if pa.types.is_large_list(arrow) else pa.list_(value)
    kind = next(kinds)
    found.append(kind)
    return pa.timestamp(arrow.unit, "UTC") if kind and pa.types.is_timestamp(arrow) else arrow


def _matching_groups(
    file: pa.NativeFile, numbers: Sequence[int], wanted: ScanRequest, columns: _Columns
) -> list[int]:
    """Return the row groups that may have rows of the condition."""
    if wanted.condition is None:
        return list(numbers)
    inside = [name for name in wanted.condition_columns if name in columns.schema.names]
    if not all(columns.is_plain(name) for name in inside):
        return list(numbers)
    fragment = ds.ParquetFileFormat().make_fragment(
        file, partition_expression=wanted.folder, row_groups=numbers
    )
    return [group.id for group in fragment.subset(wanted.condition, schema=wanted.all_columns).row_groups]


def _nanoseconds(
    file: pa.NativeFile, metadata: pq.FileMetaData, number: int, names: Sequence[str], rows: int
) -> Iterator[pa.RecordBatch | None]:
    if not names:
        yield from itertools.repeat(None)
    reader = pq.ParquetFile(file, metadata=metadata, coerce_int96_timestamp_unit="ns")
    yield from reader.iter_batches(rows, [number], list(names))


def _has_nanoseconds(pairs: pa.Array) -> bool:
    """Return whether a time with nanoseconds is another one than the same time without them."""
    return any(
        pc.any(pc.not_equal(pc.multiply(coarse.cast(pa.int64()), 1000), fine.cast(pa.int64()))).as_py()
        for coarse, fine in zip(_times(pairs.field(0)), _times(pairs.field(1)), strict=True)
    )


def _times(array: pa.Array) -> list[pa.Array]:
    if pa.types.is_timestamp(array.type):
        return [array]
    return [time for inner in flattened(array) for time in _times(inner)]


def _stored_bytes(group: pq.RowGroupMetaData) -> int:
    return sum(group.column(i).total_compressed_size for i in range(group.num_columns))


def _batch_rows(group: pq.RowGroupMetaData) -> int:
    fitting = group.num_rows * BATCH_BYTES // max(group.total_byte_size, 1)
    return int(max(1, min(fitting, _MAX_ROWS)))
