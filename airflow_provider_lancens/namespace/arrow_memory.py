"""Memory of Arrow arrays, as Lance takes it."""

from __future__ import annotations

import pyarrow as pa


def copied(array: pa.Array) -> pa.Array:
    """Return the same values in memory of their own, which Arrow aligns to 64 bytes."""
    return pa.concat_arrays([array, array.slice(0, 0)])


def aligned(array: pa.Array) -> pa.Array:
    """Return the same values in memory that Lance takes: it panics at values of 16 bytes that aren't aligned.

    Spark's rows, and the buffers of an Arrow stream, are aligned to 8 bytes.
    """
    return copied(array) if _needs_alignment(array.type) else array


def aligned_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the same rows in memory that Lance takes, see `aligned`."""
    return pa.RecordBatch.from_arrays([aligned(column) for column in batch.columns], schema=batch.schema)


def _needs_alignment(arrow: pa.DataType) -> bool:
    """Return whether a type has values of 16 bytes or more, decimals or views, also inside others."""
    if isinstance(arrow, pa.BaseExtensionType):
        arrow = arrow.storage_type
    if pa.types.is_decimal(arrow) or pa.types.is_string_view(arrow) or pa.types.is_binary_view(arrow):
        return True
    return any(_needs_alignment(arrow.field(i).type) for i in range(arrow.num_fields))
