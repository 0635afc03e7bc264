"""Types of files' columns in the table: those in which Spark reads the same files, where it loses nothing."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

_AS_SPARK_READS: dict[pa.DataType, pa.DataType] = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.large_string(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.date64(): pa.date32(),
}
_DIGITS = 38


def plain_type(arrow: pa.DataType, *, as_spark: bool = False) -> pa.DataType:
    """Return a type as a table has it: without extension types, views and runs; what is inside may be null.

    The names and the nullability of what is inside are those of a DataFrame's columns, so that both can be
    written to one table.

    Args:
        arrow: the type in a file.
        as_spark: whether to return the type in which a DataFrame of the same Parquet file is stored.
            Nanoseconds, times of day, half floats and durations, which Spark doesn't read, stay what they
            are, and so do vectors, which are arrays to Spark.
    """

    def inner(one: pa.DataType) -> pa.DataType:
        return plain_type(one, as_spark=as_spark)

    if isinstance(arrow, pa.BaseExtensionType):
        return plain_type(arrow.storage_type)
    if pa.types.is_run_end_encoded(arrow) or (as_spark and pa.types.is_dictionary(arrow)):
        return inner(arrow.value_type)
    if pa.types.is_nested(arrow):
        return _plain_nested(arrow, inner, as_spark)
    if arrow in (pa.string_view(), pa.binary_view()):
        return pa.string() if arrow == pa.string_view() else pa.binary()
    return _as_spark_reads(arrow) if as_spark else arrow


def _plain_nested(
    arrow: pa.DataType, inner: Callable[[pa.DataType], pa.DataType], as_spark: bool
) -> pa.DataType:
    if pa.types.is_map(arrow):
        return pa.map_(inner(arrow.key_type), inner(arrow.item_type))
    if pa.types.is_struct(arrow):
        fields = [arrow.field(index) for index in range(arrow.num_fields)]
        return pa.struct([(field.name, inner(field.type)) for field in fields])
    if pa.types.is_fixed_size_list(arrow):
        return pa.list_(plain_type(arrow.value_type), arrow.list_size)
    if not as_spark and (pa.types.is_large_list(arrow) or pa.types.is_large_list_view(arrow)):
        return pa.large_list(inner(arrow.value_type))
    return pa.list_(inner(arrow.value_type))


def plain_array(column: pa.Array) -> pa.Array:
    """Return an array without extension types, views of lists and runs, which Arrow doesn't cast, or empties.

    Raises:
        ValueError: a view of lists is inside another value.
    """
    arrow = column.type
    if isinstance(arrow, pa.BaseExtensionType):
        return plain_array(column.storage)
    if pa.types.is_run_end_encoded(arrow):
        return plain_array(pc.run_end_decode(column))
    if not _is_view(arrow):
        return column
    lengths = pc.fill_null(pc.list_value_length(column), 0).cast(pa.int64())
    ends = pc.cumulative_sum(lengths)
    offsets = pa.concat_arrays([pa.array([0], pa.int64()), ends])
    values = pc.list_flatten(column)
    return pa.LargeListArray.from_arrays(offsets, values, mask=column.is_null())


def inner_views(arrow: pa.DataType) -> bool:
    """Return whether a view of lists is inside a type."""
    fields = [arrow.field(index) for index in range(arrow.num_fields)]
    return any(_is_view(field.type) or inner_views(field.type) for field in fields)


def _is_view(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_list_view(arrow) or pa.types.is_large_list_view(arrow))


def _as_spark_reads(arrow: pa.DataType) -> pa.DataType:
    if pa.types.is_decimal(arrow) and arrow.precision <= _DIGITS:
        return pa.decimal128(arrow.precision, arrow.scale)
    if pa.types.is_timestamp(arrow) and arrow.unit != "ns":
        return pa.timestamp("us", "UTC" if arrow.tz else None)
    if pa.types.is_fixed_size_binary(arrow):
        return pa.binary()
    return _AS_SPARK_READS.get(arrow, arrow)
