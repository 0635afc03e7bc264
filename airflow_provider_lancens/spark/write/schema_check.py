"""Check that rows fit an existing table, on the driver, before anything is written.

The rules are the same for DataFrames and files; docs/types.md has them as a table, which tests compare with
this code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import pyarrow as pa

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.spark.blobs.blob_columns import fits_blob, is_blob

_FLOAT_BITS = {pa.float16(): 11, pa.float32(): 24, pa.float64(): 53}
"""Floating-point types by the size in bits of the integers that they all represent exactly."""
_TEXT = (pa.string(), pa.large_string(), pa.string_view())
_BYTES = (pa.binary(), pa.large_binary(), pa.binary_view())
_UNITS = ("s", "ms", "us", "ns")


def schema_mismatch(
    table: str, reasons: Sequence[str], *, may_merge: bool = False
) -> spec_errors.TableSchemaValidationError:
    """Return the error for rows that don't fit a table's columns.

    Args:
        table: the table's identifier.
        reasons: why they don't, by column.
        may_merge: whether to name the argument that lets the columns differ.
    """
    merge = (
        ", or pass schema_mode='merge', which adds the columns that the table lacks, fills those that the "
        "rows lack with null, and widens types"
    )
    return spec_errors.TableSchemaValidationError(
        f"table {table}: the rows do not match its columns: {'; '.join(reasons)}. Select, cast "
        f"or rename the columns of the rows{merge if may_merge else ''}"
    )


def mismatches(rows: pa.Schema, existing: pa.Schema, *, time_zone_known: bool = True) -> list[str]:
    """Return why Lance would refuse rows, or data would be lost.

    Columns are matched by name, in any order.

    Args:
        rows: the schema of the rows as Arrow.
        existing: the table's schema.
        time_zone_known: see `fits_column`.

    Returns:
        A reason per column; none if the rows fit.
    """
    source = {field.name: field for field in rows}
    target = {field.name: field for field in existing}
    reasons = [f"{name} is missing in the rows" for name in target if name not in source]
    reasons += [f"{name} is not in the table" for name in source if name not in target]
    reasons += [f"{name} is in the rows {n} times" for name, n in Counter(rows.names).items() if n > 1]
    for name in (name for name in target if name in source):
        rows_type, table_type = source[name].type, target[name].type
        if rows_type != table_type and not fits_column(
            rows_type, table_type, time_zone_known=time_zone_known
        ):
            reasons.append(f"{name} is {rows_type}, but {table_type} in the table")
        elif pa.types.is_null(rows_type) and not target[name].nullable:
            reasons.append(f"{name} is {rows_type}, but the table does not allow nulls there")
    return reasons


def fits_column(source: pa.DataType, target: pa.DataType, *, time_zone_known: bool = True) -> bool:
    """Return whether a column of one type can be written to a column of another type.

    A top-level column has more conversions than a value inside an array, a map or a struct: an array also
    fits a vector, where each length is checked on write (nested, Arrow crashes on vectors that are all null,
    see `record_batches`), dictionaries are decoded, and a date fits a timestamp with a time zone.

    Args:
        source: the type of the rows' column.
        target: the type of the table's column.
        time_zone_known: whether the time zone is known in which a date becomes a timestamp at midnight.
    """
    if is_blob(target):
        return fits_blob(source)
    if pa.types.is_dictionary(source) and not pa.types.is_dictionary(target):
        return fits_column(source.value_type, target, time_zone_known=time_zone_known)
    if pa.types.is_fixed_size_list(target):
        vector = pa.types.is_fixed_size_list(source) and source.list_size == target.list_size
        if vector or pa.types.is_list(source):
            return fits(source.value_type, target.value_type)
    if source == pa.date32() and is_zoned_timestamp(target):
        return time_zone_known
    return fits(source, target)


def is_zoned_timestamp(arrow: pa.DataType) -> bool:
    """Return whether a type is a timestamp with a time zone; to cast a date to it, a time zone is needed."""
    return pa.types.is_timestamp(arrow) and arrow.tz is not None


def fits(source: pa.DataType, target: pa.DataType) -> bool:
    """Return whether another type can represent all values of a type."""
    return source == target or pa.types.is_null(source) or any(rule(source, target) for rule in _RULES)


def _same_family(source: pa.DataType, target: pa.DataType) -> bool:
    if pa.types.is_fixed_size_binary(source):
        return target in _BYTES
    return any(source in family and target in family for family in (_TEXT, _BYTES))


def _wider_integer(source: pa.DataType, target: pa.DataType) -> bool:
    if not (pa.types.is_integer(source) and pa.types.is_integer(target)):
        return False
    loses_sign = pa.types.is_signed_integer(source) and pa.types.is_unsigned_integer(target)
    return not loses_sign and _integer_bits(source) <= _integer_bits(target)


def _wider_float(source: pa.DataType, target: pa.DataType) -> bool:
    bits = _integer_bits(source) if pa.types.is_integer(source) else _FLOAT_BITS.get(source)
    return bits is not None and bits <= _FLOAT_BITS.get(target, 0)


def _wider_decimal(source: pa.DataType, target: pa.DataType) -> bool:
    if not pa.types.is_decimal(target):
        return False
    if pa.types.is_integer(source):
        digits, scale = len(str(2 ** _integer_bits(source))), 0
    elif pa.types.is_decimal(source):
        digits, scale = source.precision - source.scale, source.scale
    else:
        return False
    return bool(target.scale >= scale and target.precision - target.scale >= digits)


def _finer_time(source: pa.DataType, target: pa.DataType) -> bool:
    if source == pa.date32():
        return bool(target == pa.date64() or (pa.types.is_timestamp(target) and target.tz is None))
    if pa.types.is_timestamp(source) and pa.types.is_timestamp(target):
        # From nanoseconds to Spark's microseconds the cast checks each value, also for overflow.
        same_zones = (source.tz is None) == (target.tz is None)
        return same_zones and bool(target.unit == "us" or _is_finer(source, target))
    same_kind = any(kind(source) and kind(target) for kind in (pa.types.is_time, pa.types.is_duration))
    return same_kind and _is_finer(source, target)


def _wider_nested(source: pa.DataType, target: pa.DataType) -> bool:
    if _is_array(source) and _is_array(target):
        return fits(source.value_type, target.value_type)
    if pa.types.is_map(source) and pa.types.is_map(target):
        return fits(source.key_type, target.key_type) and fits(source.item_type, target.item_type)
    if pa.types.is_struct(source) and pa.types.is_struct(target):
        return _fits_struct(source, target)
    return False


def _fits_struct(source: pa.DataType, target: pa.DataType) -> bool:
    fields, target_fields = ([t.field(i) for i in range(t.num_fields)] for t in (source, target))
    # Within a struct the order matters: Arrow casts its fields by position.
    return [f.name for f in fields] == [f.name for f in target_fields] and all(
        fits(a.type, b.type) for a, b in zip(fields, target_fields, strict=True)
    )


def _integer_bits(arrow: pa.DataType) -> int:
    return int(arrow.bit_width) - int(pa.types.is_signed_integer(arrow))


def _is_finer(source: pa.DataType, target: pa.DataType) -> bool:
    return bool(_UNITS.index(source.unit) <= _UNITS.index(target.unit))


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
