"""Whether rows fit a table that exists: decided by the driver, before anything is written."""

from __future__ import annotations

import pyarrow as pa
from lance_namespace.errors import TableSchemaValidationError

_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_TEXT = (pa.string(), pa.large_string(), pa.string_view())
_BYTES = (pa.binary(), pa.large_binary(), pa.binary_view())


def check_fit(table: str, rows: pa.Schema, existing: pa.Schema) -> None:
    """Refuse an append that Lance would refuse, or that would lose something.

    Columns are matched by name, in any order. A type fits where it is the same, the same with larger
    offsets, or a wider one.

    Args:
        table: the table's identifier, for the message.
        rows: the schema of the rows as Arrow.
        existing: the table's.

    Raises:
        TableSchemaValidationError: (20) naming every column that doesn't fit, and why.
    """
    reasons = [f"{name} is missing in the rows" for name in existing.names if name not in rows.names]
    reasons += [f"{name} isn't in the table" for name in rows.names if name not in existing.names]
    reasons += [
        f"{name} is {rows.field(name).type}, the table has {existing.field(name).type}"
        for name in existing.names
        if name in rows.names and not fits_column(rows.field(name).type, existing.field(name).type)
    ]
    if reasons:
        raise TableSchemaValidationError(
            f"table {table}: the rows can't be appended; columns: {'; '.join(reasons)}. "
            "Select, cast or rename them"
        )


def fits_column(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a column of one type can go into one of another type.

    An array also goes into a vector; each value's length is checked where it is written. Deeper down it
    doesn't: Arrow crashes on vectors that are all null (see `batches`).
    """
    if pa.types.is_list(given) and pa.types.is_fixed_size_list(wanted):
        return fits(given.value_type, wanted.value_type)
    return fits(given, wanted)


def fits(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether all values of one type can be held by another one."""
    if given == wanted or any(given in family and wanted in family for family in (_TEXT, _BYTES)):
        return True
    return _fits_number(given, wanted) or _fits_nested(given, wanted)


def _fits_number(given: pa.DataType, wanted: pa.DataType) -> bool:
    if given in _INTEGERS and wanted in _INTEGERS:
        return bool(given.bit_width <= wanted.bit_width)
    if pa.types.is_decimal(given) and pa.types.is_decimal(wanted):
        digits = given.precision - given.scale
        return bool(wanted.scale >= given.scale and wanted.precision - wanted.scale >= digits)
    if pa.types.is_timestamp(given) and pa.types.is_timestamp(wanted):
        # Nanoseconds can't reach as far as Spark's microseconds: the cast checks each value.
        return bool(wanted.unit in ("us", "ns") and (given.tz is None) == (wanted.tz is None))
    return bool(given == pa.float32() and wanted == pa.float64())


def _fits_nested(given: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_list(given) and (pa.types.is_list(wanted) or pa.types.is_large_list(wanted)):
        return fits(given.value_type, wanted.value_type)
    if pa.types.is_map(given) and pa.types.is_map(wanted):
        return fits(given.key_type, wanted.key_type) and fits(given.item_type, wanted.item_type)
    if pa.types.is_struct(given) and pa.types.is_struct(wanted):
        return _fits_struct(given, wanted)
    return False


def _fits_struct(given: pa.DataType, wanted: pa.DataType) -> bool:
    ours, theirs = ([t.field(i) for i in range(t.num_fields)] for t in (given, wanted))
    # Within a struct the order counts: Arrow casts its fields by position.
    return [f.name for f in ours] == [f.name for f in theirs] and all(
        fits(a.type, b.type) for a, b in zip(ours, theirs, strict=True)
    )
