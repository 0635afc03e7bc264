"""Check that rows fit an existing table, on the driver, before anything is written.

The rules are the same for DataFrames and files; docs/spark.md has them as a table, which tests compare with
this code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import pyarrow as pa
from lance_namespace.errors import TableSchemaValidationError

_FLOAT_BITS = {pa.float16(): 11, pa.float32(): 24, pa.float64(): 53}
"""Floating-point types by the size in bits of the integers that they all represent exactly."""
_TEXT = (pa.string(), pa.large_string(), pa.string_view())
_BYTES = (pa.binary(), pa.large_binary(), pa.binary_view())
_UNITS = ("s", "ms", "us", "ns")


def unfit_rows(table: str, reasons: Sequence[str]) -> TableSchemaValidationError:
    """Return the error for rows that don't fit a table's columns, with these reasons."""
    return TableSchemaValidationError(
        f"table {table}: the rows do not match its columns: {'; '.join(reasons)}. Select, cast "
        "or rename the columns of the rows"
    )


def misfits(rows: pa.Schema, existing: pa.Schema, *, time_zone_known: bool = True) -> list[str]:
    """Return why Lance would refuse rows, or data would be lost.

    Columns are matched by name, in any order.

    Args:
        rows: the schema of the rows as Arrow.
        existing: the table's schema.
        time_zone_known: see `fits_column`.

    Returns:
        A reason per column; none if the rows fit.
    """
    given = {field.name: field for field in rows}
    wanted = {field.name: field for field in existing}
    reasons = [f"{name} is missing in the rows" for name in wanted if name not in given]
    reasons += [f"{name} is not in the table" for name in given if name not in wanted]
    reasons += [f"{name} is in the rows {n} times" for name, n in Counter(rows.names).items() if n > 1]
    for name in (name for name in wanted if name in given):
        ours, theirs = given[name].type, wanted[name].type
        if ours != theirs and not fits_column(ours, theirs, time_zone_known=time_zone_known):
            reasons.append(f"{name} is {ours}, but {theirs} in the table")
        elif pa.types.is_null(ours) and not wanted[name].nullable:
            reasons.append(f"{name} is {ours}, but the table does not allow nulls there")
    return reasons


def fits_column(given: pa.DataType, wanted: pa.DataType, *, time_zone_known: bool = True) -> bool:
    """Return whether a column of one type can be written to a column of another type.

    A top-level column has more conversions than a value inside an array, a map or a struct: an array also
    fits a vector, where each length is checked on write (nested, Arrow crashes on vectors that are all null,
    see `record_batches`), dictionaries are decoded, and a date fits a timestamp with a time zone.

    Args:
        given: the type of the rows' column.
        wanted: the type of the table's column.
        time_zone_known: whether the time zone is known in which a date becomes a timestamp at midnight.
    """
    if pa.types.is_dictionary(given) and not pa.types.is_dictionary(wanted):
        return fits_column(given.value_type, wanted, time_zone_known=time_zone_known)
    if pa.types.is_fixed_size_list(wanted):
        vector = pa.types.is_fixed_size_list(given) and given.list_size == wanted.list_size
        if vector or pa.types.is_list(given):
            return fits(given.value_type, wanted.value_type)
    if given == pa.date32() and is_moment(wanted):
        return time_zone_known
    return fits(given, wanted)


def is_moment(arrow: pa.DataType) -> bool:
    """Return whether a type is a timestamp with a time zone; to cast a date to it, a time zone is needed."""
    return pa.types.is_timestamp(arrow) and arrow.tz is not None


def fits(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether another type can represent all values of a type."""
    return given == wanted or pa.types.is_null(given) or any(rule(given, wanted) for rule in _RULES)


def _same_family(given: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_fixed_size_binary(given):
        return wanted in _BYTES
    return any(given in family and wanted in family for family in (_TEXT, _BYTES))


def _wider_integer(given: pa.DataType, wanted: pa.DataType) -> bool:
    if not (pa.types.is_integer(given) and pa.types.is_integer(wanted)):
        return False
    loses_sign = pa.types.is_signed_integer(given) and pa.types.is_unsigned_integer(wanted)
    return not loses_sign and _integer_bits(given) <= _integer_bits(wanted)


def _wider_float(given: pa.DataType, wanted: pa.DataType) -> bool:
    bits = _integer_bits(given) if pa.types.is_integer(given) else _FLOAT_BITS.get(given)
    return bits is not None and bits <= _FLOAT_BITS.get(wanted, 0)


def _wider_decimal(given: pa.DataType, wanted: pa.DataType) -> bool:
    if not pa.types.is_decimal(wanted):
        return False
    if pa.types.is_integer(given):
        digits, scale = len(str(2 ** _integer_bits(given))), 0
    elif pa.types.is_decimal(given):
        digits, scale = given.precision - given.scale, given.scale
    else:
        return False
    return bool(wanted.scale >= scale and wanted.precision - wanted.scale >= digits)


def _finer_time(given: pa.DataType, wanted: pa.DataType) -> bool:
    if given == pa.date32():
        return bool(wanted == pa.date64() or (pa.types.is_timestamp(wanted) and wanted.tz is None))
    if pa.types.is_timestamp(given) and pa.types.is_timestamp(wanted):
        # From nanoseconds to Spark's microseconds the cast checks each value, also for overflow.
        same_zones = (given.tz is None) == (wanted.tz is None)
        return same_zones and bool(wanted.unit == "us" or _is_finer(given, wanted))
    same_kind = any(kind(given) and kind(wanted) for kind in (pa.types.is_time, pa.types.is_duration))
    return same_kind and _is_finer(given, wanted)


def _wider_nested(given: pa.DataType, wanted: pa.DataType) -> bool:
    if _is_array(given) and _is_array(wanted):
        return fits(given.value_type, wanted.value_type)
    if pa.types.is_map(given) and pa.types.is_map(wanted):
        return fits(given.key_type, wanted.key_type) and fits(given.item_type, wanted.item_type)
    if pa.types.is_struct(given) and pa.types.is_struct(wanted):
        return _fits_struct(given, wanted)
    return False


def _fits_struct(given: pa.DataType, wanted: pa.DataType) -> bool:
    ours, theirs = ([t.field(i) for i in range(t.num_fields)] for t in (given, wanted))
    # Within a struct the order matters: Arrow casts its fields by position.
    return [f.name for f in ours] == [f.name for f in theirs] and all(
        fits(a.type, b.type) for a, b in zip(ours, theirs, strict=True)
    )


def _integer_bits(arrow: pa.DataType) -> int:
    return int(arrow.bit_width) - int(pa.types.is_signed_integer(arrow))


def _is_finer(given: pa.DataType, wanted: pa.DataType) -> bool:
    return bool(_UNITS.index(given.unit) <= _UNITS.index(wanted.unit))


def _is_array(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_list(arrow) or pa.types.is_large_list(arrow))


_RULES: tuple[Callable[[pa.DataType, pa.DataType], bool], ...] = (
    _same_family,
    _wider_integer,
    _wider_float,
    _wider_decimal,
    _finer_time,
    _wider_nested,
)
