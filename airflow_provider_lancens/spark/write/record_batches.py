"""Convert record batches between Spark and Lance: types and alignment. Runs on executors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_lancens.namespace.row_errors import (
    RowError,
    check_text,
    contains_text,
    copied,
    first_row,
    rows_from,
)
from airflow_provider_lancens.spark.blobs.blob_columns import blob_array, is_blob
from airflow_provider_lancens.spark.schema.merge_plan import ColumnMatch
from airflow_provider_lancens.spark.write.schema_check import fits_column
from airflow_provider_lancens.spark.write.value_casts import (
    cast_checked,
    flattened,
    is_list,
    shown,
)


def conform(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, cut_times: bool = False
) -> Iterator[pa.RecordBatch]:
    """Yield the batches with exactly these columns, in this order, of these types.

    Args:
        batches: batches that have at least these columns.
        schema: the columns.
        cut_times: whether to truncate times to their new unit; if not, finer times don't fit.

    Raises:
        RowError: a value doesn't fit.
    """
    start = 0
    for batch in batches:
        with rows_from(start):
            columns = [_column(batch.column(field.name), field, cut_times) for field in schema]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)
        start += batch.num_rows


def merged(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, match: ColumnMatch
) -> Iterator[pa.RecordBatch]:
    """Yield the batches with exactly these columns, null where they lack one or a nested field of it.

    Args:
        batches: the batches.
        schema: the columns of the table; all fields that the batches lack are nullable.
        match: where the columns are in the batches; fields of structs are matched by name.

    Raises:
        RowError: a value doesn't fit.
    """
    start = 0
    for batch in batches:
        with rows_from(start):
            columns = [_merged_column(batch, field, match) for field in schema]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)
        start += batch.num_rows


def converted(batch: pa.RecordBatch, schema: pa.Schema, match: ColumnMatch | None) -> pa.RecordBatch:
    """Return a batch with exactly these columns, null where it lacks one, whatever `match` says.

    Args:
        batch: the batch.
        schema: the columns.
        match: where they are in the batch; None if it has them by the same names.

    Raises:
        RowError: a value doesn't fit.
    """
    present = batch.schema.names

    def column(field: pa.Field) -> pa.Array:
        source = field.name if match is None else match.sources.get(field.name)
        if source not in present:
            return pa.nulls(batch.num_rows, field.type)
        found = batch.column(source)
        if match is not None:
            found = _by_name(found, field.type, match.match_case)
        return _column(found, field, cut_times=False)

    return pa.RecordBatch.from_arrays([column(field) for field in schema], schema=schema)


def check_no_nulls(column: pa.Array, name: str) -> None:
    """Check that a column has no null.

    Raises:
        RowError: it has.
    """
    if column.null_count:
        raise RowError(first_row(column, _has_nulls), name, "the table does not allow nulls here")


def without_empty(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return the batches that have rows."""
    return (batch for batch in batches if batch.num_rows)


def _column(column: pa.Array, field: pa.Field, cut_times: bool) -> pa.Array:
    if not field.nullable:
        check_no_nulls(column, field.name)
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if is_blob(field.type):
        return blob_array(column, field.name)
    if pa.types.is_dictionary(column.type) and not pa.types.is_dictionary(field.type):
        column = column.dictionary_decode()  # Arrow casts values more widely than dictionaries of them
    if column.type != field.type:
        column = _cast(column, field, cut_times)
    if _requires_values(field.type):
        _check_values(column, field)
    if not cut_times and contains_text(field.type):
        check_text(column, field.name)
    return _realigned(column) if _contains_decimals(field.type) else column


def _cast(column: pa.Array, field: pa.Field, cut_times: bool) -> pa.Array:
    if column.null_count == len(column):
        # Also because Arrow crashes when casting only nulls to vectors: Spark sends no values for them.
        return pa.nulls(len(column), field.type)
    if not cut_times:
        widens = fits_column(column.type, field.type)
        return cast_checked(column, field.type, field.name, widens=widens)
    try:
        return column.cast(options=pc.CastOptions(field.type, allow_time_truncate=True))
    except pa.ArrowException as error:
        raise ValueError(
            f"column {field.name}: cannot convert {column.type} to {field.type}: {error}"
        ) from error


def _has_nulls(column: pa.Array) -> bool:
    return bool(column.null_count)


def _requires_values(arrow: pa.DataType) -> bool:
    """Return whether a field inside a type doesn't allow nulls."""
    fields = [arrow.field(index) for index in range(arrow.num_fields)]
    if pa.types.is_map(arrow):
        fields = [arrow.item_field]  # keys never are null
    return any(not field.nullable or _requires_values(field.type) for field in fields)


def _check_values(column: pa.Array, field: pa.Field) -> None:
    """Check that there are no nulls inside a column where its type doesn't allow them: Arrow casts them."""

    def fails(part: pa.Array) -> bool:
        return _lacks_values(part, field.type)

    if fails(column):
        row = first_row(column, fails)
        raise RowError(row, field.name, f"{shown(column[row])}: the table does not allow nulls inside")


def _lacks_values(array: pa.Array, arrow: pa.DataType) -> bool:
    inner = flattened(array)
    if pa.types.is_map(arrow):
        fields = [arrow.key_field, arrow.item_field]
    elif is_list(arrow):
        fields = [arrow.value_field]
    else:
        fields = [arrow.field(index) for index in range(arrow.num_fields)]
    return any(
        (not field.nullable and bool(values.null_count)) or _lacks_values(values, field.type)
        for values, field in zip(inner, fields, strict=True)
    )


def _merged_column(batch: pa.RecordBatch, field: pa.Field, match: ColumnMatch) -> pa.Array:
    if field.name not in match.sources:
        return pa.nulls(batch.num_rows, field.type)
    column = batch.column(match.sources[field.name])
    return _column(_by_name(column, field.type, match.match_case), field, cut_times=False)


def _by_name(column: pa.Array, arrow: pa.DataType, match_case: bool) -> pa.Array:
    """Return a column with the fields of its structs in the order of a type, null where it lacks one."""
    if pa.types.is_struct(column.type) and pa.types.is_struct(arrow):
        names = [column.type.field(i).name for i in range(column.type.num_fields)]
        positions = {name if match_case else name.lower(): i for i, name in enumerate(names)}
        fields = [arrow.field(i) for i in range(arrow.num_fields)]
        found = [positions.get(field.name if match_case else field.name.lower()) for field in fields]
        children = [
            pa.nulls(len(column), field.type)
            if i is None
            else _by_name(column.field(i), field.type, match_case)
            for i, field in zip(found, fields, strict=True)
        ]
        named = [
            field.with_type(child.type).with_nullable(True)
            for field, child in zip(fields, children, strict=True)
        ]
        return pa.StructArray.from_arrays(children, fields=named, mask=column.is_null())
    if _is_list(column.type) and _is_list(arrow) and _contains_structs(arrow):
        kind = pa.LargeListArray if pa.types.is_large_list(column.type) else pa.ListArray
        values = _by_name(column.values, arrow.value_type, match_case)
        # Arrow takes a mask only with offsets that aren't those of a slice.
        return kind.from_arrays(copied(column.offsets), values, mask=column.is_null())
    return column


def _is_list(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_list(arrow) or pa.types.is_large_list(arrow))


def _contains_structs(arrow: pa.DataType) -> bool:
    return pa.types.is_struct(arrow) or (_is_list(arrow) and _contains_structs(arrow.value_type))


def _realigned(column: pa.Array) -> pa.Array:
    # Spark's Arrow buffers are aligned to 8 bytes; Lance aborts the process unless a decimal's are aligned to
    # 16. Concatenating two arrays copies them, nested ones too, into memory that Arrow aligns.
    return copied(column)


def _contains_decimals(arrow: pa.DataType) -> bool:
    return pa.types.is_decimal(arrow) or any(
        _contains_decimals(arrow.field(i).type) for i in range(arrow.num_fields)
    )
