"""Convert record batches between Spark and Lance: types and alignment. Runs on executors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc


def conform(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, cut_times: bool = False
) -> Iterator[pa.RecordBatch]:
    """Yield the batches with exactly these columns, in this order, of these types.

    Args:
        batches: batches that have at least these columns.
        schema: the columns.
        cut_times: whether to truncate times to their new unit; if not, finer times don't fit.

    Raises:
        ValueError: a value doesn't fit; the message names the column.
    """
    for batch in batches:
        columns = [_column(batch.column(field.name), field, cut_times) for field in schema]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def without_empty(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return the batches that have rows."""
    return (batch for batch in batches if batch.num_rows)


def _column(column: pa.Array, field: pa.Field, cut_times: bool) -> pa.Array:
    if not field.nullable and column.null_count:
        raise ValueError(
            f"column {field.name}: the table does not allow nulls here, but the data contains some"
        )
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_dictionary(column.type) and not pa.types.is_dictionary(field.type):
        column = column.dictionary_decode()  # Arrow casts values more widely than dictionaries of them
    if column.type != field.type:
        column = _cast(column, field, cut_times)
    return _realigned(column) if _contains_decimals(field.type) else column


def _cast(column: pa.Array, field: pa.Field, cut_times: bool) -> pa.Array:
    if column.null_count == len(column):
        # Also because Arrow crashes when casting only nulls to vectors: Spark sends no values for them.
        return pa.nulls(len(column), field.type)
    try:
        return column.cast(options=pc.CastOptions(field.type, allow_time_truncate=cut_times))
    except pa.ArrowException as error:
        raise ValueError(
            f"column {field.name}: cannot convert {column.type} to {field.type}: {error}"
        ) from error


def _realigned(column: pa.Array) -> pa.Array:
    # Spark's Arrow buffers are aligned to 8 bytes; Lance aborts the process unless a decimal's are aligned to
    # 16. Concatenating two arrays copies them, nested ones too, into memory that Arrow aligns.
    return pa.concat_arrays([column, column.slice(0, 0)])


def _contains_decimals(arrow: pa.DataType) -> bool:
    return pa.types.is_decimal(arrow) or any(
        _contains_decimals(arrow.field(i).type) for i in range(arrow.num_fields)
    )
