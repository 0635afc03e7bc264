"""Parquet files: row groups, and values as Spark reads them, including dates of the old calendar."""

from __future__ import annotations

import datetime as dt
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from airflow_provider_lancens.namespace.row_errors import RowError, first_row
from airflow_provider_lancens.spark.table.row_casts import flattened, shown
from airflow_provider_lancens.spark.write.files.formats import (
    BATCH_BYTES,
    FilePiece,
    FileRowsBatch,
    InspectedFile,
    Open,
    ScanRequest,
)

_EPOCH = dt.date(1970, 1, 1)
_SWITCH = (dt.date(1582, 10, 15) - _EPOCH).days
"""The first day of the new calendar."""
_DAY = 86_400_000_000
_UNIFORM = (dt.date(1900, 1, 1) - _EPOCH).days * _DAY
"""From this time on, local times of both calendars are the same in all zones."""
_SPARK = b"org.apache.spark.version"
_ZONE = b"org.apache.spark.timeZone"
_UTC = frozenset(["UTC", "Etc/UTC", "GMT", "Etc/GMT", "Z", "+00:00"])


class Calendar(NamedTuple):
    """The calendar of a kind of values in a file: "new", "old" or "unknown"."""

    kind: str
    zone: str | None = None
    """The time zone of the local times, in the old calendar; None if the file doesn't say it."""


NEW = Calendar("new")


class Calendars(NamedTuple):
    """The calendars of a file."""

    dates: Calendar
    """The calendar of dates and of times stored as numbers."""
    int96: Calendar
    """The calendar of times stored in 12 bytes."""


def calendars_of(metadata: pq.FileMetaData) -> Calendars:
    """Return the calendars in which a Parquet file was written, as Spark finds out."""
    keys: Mapping[bytes, bytes] = metadata.metadata or {}
    zone = keys.get(_ZONE, b"").decode() or None
    if version := keys.get(_SPARK):
        numbers = tuple(int(part) for part in version.split(b".")[:2])
        dates = numbers < (3, 0) or b"org.apache.spark.legacyDateTime" in keys
        int96 = numbers < (3, 1) or b"org.apache.spark.legacyINT96" in keys
        return Calendars(*(Calendar("old", zone) if old else NEW for old in (dates, int96)))
    writer = (metadata.created_by or "").lower()
    if keys.get(b"writer.date.proleptic") == b"true" or b"iceberg.schema" in keys:
        return Calendars(NEW, NEW)
    # Spark 2 and Hive don't say it, and use the library that others use with the new calendar.
    kind = Calendar("unknown") if writer.startswith(("parquet-mr", "impala")) else NEW
    return Calendars(kind, kind)


def in_new_calendar(column: pa.Array, calendars: Sequence[Calendar], name: str) -> pa.Array:
    """Return a column with its dates and times in the new calendar.

    Args:
        column: the column.
        calendars: the calendar of each of its leaves, in the file's order.
        name: the column's name, for the message.

    Raises:
        RowError: the calendar or the time zone of a value isn't known.
    """
    if all(calendar == NEW for calendar in calendars) or not _is_old(column, iter(calendars)):
        return column

    def fails(part: pa.Array) -> bool:
        return _is_old(part, iter(calendars), unconvertible=True)

    if fails(column):
        row = first_row(column, fails)
        raise RowError(
            row,
            name,
            f"{shown(column[row])}: it is not known in which calendar and time zone the file counts days "
            "before 1582-10-15, or times before 1900. Read the file as a DataFrame, with Spark's settings "
            "spark.sql.parquet.datetimeRebaseModeInRead and int96RebaseModeInRead",
        )
    leaves = iter(calendars)
    return _converted(pa.concat_arrays([column, column.slice(0, 0)]), leaves)


def _is_old(array: pa.Array, leaves: Any, *, unconvertible: bool = False) -> bool:
    """Return whether a value may be in the old calendar, or also whether it can't be converted."""
    if pa.types.is_nested(array.type):
        # All are visited, so that each leaf takes its calendar.
        found = [_is_old(inner, leaves, unconvertible=unconvertible) for inner in flattened(array)]
        return any(found)
    calendar = next(leaves)
    if calendar == NEW or (limit := _limit(array.type)) is None:
        return False
    if unconvertible and calendar.kind == "old" and (limit == _SWITCH or calendar.zone in _UTC):
        return False
    least = pc.min(array.cast(_numbers(array.type))).as_py()
    return least is not None and least < limit


def _limit(arrow: pa.DataType) -> int | None:
    if arrow == pa.date32():
        return _SWITCH
    # Times without a time zone are in the new calendar whoever wrote them.
    if pa.types.is_timestamp(arrow) and arrow.tz is not None:
        return _UNIFORM // (1 if arrow.unit == "us" else 1000) if arrow.unit in ("us", "ms") else None
    return None


def _numbers(arrow: pa.DataType) -> pa.DataType:
    return pa.int32() if arrow == pa.date32() else pa.int64()


def _converted(array: pa.Array, leaves: Any) -> pa.Array:
    arrow = array.type
    if not pa.types.is_nested(arrow):
        return _leaf(array, next(leaves))
    own = array.buffers()[: 1 if pa.types.is_struct(arrow) or pa.types.is_fixed_size_list(arrow) else 2]
    if pa.types.is_struct(arrow):
        children = [_converted(array.field(index), leaves) for index in range(arrow.num_fields)]
    elif pa.types.is_map(arrow):
        keys, items = _converted(array.keys, leaves), _converted(array.items, leaves)
        children = [pa.StructArray.from_arrays([keys, items], fields=[arrow.key_field, arrow.item_field])]
    else:
        children = [_converted(array.values, leaves)]
    return pa.Array.from_buffers(arrow, len(array), own, children=children)


def _leaf(array: pa.Array, calendar: Calendar) -> pa.Array:
    if calendar == NEW or _limit(array.type) is None:
        return array
    numbers = array.cast(_numbers(array.type))
    known = numbers.fill_null(0).to_numpy(zero_copy_only=False).astype("int64")
    if array.type == pa.date32():
        moved = _moved_days(known)
    else:
        day = _DAY // (1 if array.type.unit == "us" else 1000)
        days = known // day
        moved = _moved_days(days) * day + (known - days * day)
    values = pa.array(
        moved.astype(known.dtype), pa.int64(), mask=array.is_null().to_numpy(zero_copy_only=False)
    )
    return values.cast(numbers.type).cast(array.type)


def _moved_days(days: Any) -> Any:
    """Return the days with the same dates in the new calendar, for days in the old one before the switch."""
    count = days + 2_440_588 + 32_082  # days since March 1 of the Julian year -4800
    year = (4 * count + 3) // 1461
    in_year = count - 1461 * year // 4
    month = (5 * in_year + 2) // 153
    day = in_year - (153 * month + 2) // 5 + 1
    year = year - 4800 + month // 10
    month = month + 3 - 12 * (month // 10)
    return np.where(days < _SWITCH, _days_of(year, month, day), days)


def _days_of(year: Any, month: Any, day: Any) -> Any:
    """Return the days since 1970 of dates in the new calendar, also before the year 1."""
    year = year - (month <= 2)
    era = year // 400
    of_era = year - era * 400
    of_year = (153 * (month + np.where(month > 2, -3, 9)) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


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
            for number in _matching_groups(file, metadata, numbers, wanted, columns):
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
    file: pa.NativeFile,
    metadata: pq.FileMetaData,
    numbers: Sequence[int],
    wanted: ScanRequest,
    columns: _Columns,
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
    found = fragment.subset(wanted.condition, schema=wanted.all_columns).row_groups
    matching = {group.id for group in found}
    return [
        number
        for number in numbers
        if number in matching or _may_hide_nan(metadata.row_group(number), inside)
    ]


def _may_hide_nan(group: pq.RowGroupMetaData, names: Sequence[str]) -> bool:
    """Return whether Arrow takes all values of a column for equal, though some may be NaN.

    Statistics leave NaN out, and a column whose minimum is its maximum becomes a constant in a condition.
    """
    chunks = [group.column(index) for index in range(group.num_columns)]
    return any(
        chunk.physical_type in ("FLOAT", "DOUBLE")
        and any(f"{chunk.path_in_schema}.".startswith(f"{name}.") for name in names)
        and chunk.is_stats_set
        and chunk.statistics.has_min_max
        and chunk.statistics.min == chunk.statistics.max
        for chunk in chunks
    )


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
