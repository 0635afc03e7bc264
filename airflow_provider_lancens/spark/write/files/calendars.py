"""Dates and times of Parquet files that were written in the old calendar.

Spark 2 and Hive count days in the Julian calendar before 1582-10-15, and newer Sparks do if they are told to.
The same date is another day there, so each value is moved to the day of that date in the calendar that Arrow,
Lance and newer Sparks use.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from airflow_provider_lancens.namespace.row_errors import RowError, first_row
from airflow_provider_lancens.spark.write.value_casts import flattened, shown

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
    """Of dates and of times stored as numbers."""
    int96: Calendar
    """Of times stored in 12 bytes."""


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
