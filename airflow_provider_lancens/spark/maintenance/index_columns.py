"""Check that a column can have an index, on the driver, before anything is built."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.spark.maintenance.maintenance_options import TEXT_TYPE, IndexSpec


def check_column(table: str, spec: IndexSpec, schema: pa.Schema) -> None:
    """Refuse an index that Lance can't build.

    Args:
        table: the table's identifier, for the message.
        spec: the index.
        schema: the table's columns.

    Raises:
        TableColumnNotFoundError: (12) there is no such column.
        InvalidInputError: (13) the column's type can't have this index, or a vector can't be divided so.
    """
    if spec.column not in schema.names:
        raise spec_errors.TableColumnNotFoundError(
            f"table {table}: column={spec.column!r} does not exist; columns: {schema.names}"
        )
    arrow = schema.field(spec.column).type
    fits, wanted = _FITTING.get(spec.index_type, _VECTOR if spec.is_vector else _ORDERED)
    if not fits(arrow):
        raise spec_errors.InvalidInputError(
            f"table {table}: column {spec.column} is {arrow}; index_type {spec.index_type!r} "
            f"requires {wanted}"
        )
    if spec.is_quantized:
        _check_divisible(table, spec, arrow.list_size)


def sub_vectors(spec: IndexSpec, dimension: int) -> int | None:
    """Return the number of sub-vectors of a vector; None if it must be given."""
    if given := spec.options.get("num_sub_vectors"):
        return int(given)
    # As Lance's own training chooses.
    return next((parts for size in (16, 8) if _divides(spec, parts := dimension // size, dimension)), None)


def _check_divisible(table: str, spec: IndexSpec, dimension: int) -> None:
    parts = sub_vectors(spec, dimension)
    if parts is None or not _divides(spec, parts, dimension):
        divisors = [n for n in range(1, dimension + 1) if _divides(spec, n, dimension)]
        raise spec_errors.InvalidInputError(
            f"table {table}: column {spec.column} has {dimension} dimensions; "
            f"options['num_sub_vectors'] is {parts}, but must divide them; allowed: {divisors}"
        )


def _divides(spec: IndexSpec, parts: int, dimension: int) -> bool:
    # Two codes of four bits share a byte.
    step = 2 if spec.options.get("num_bits") == 4 else 1
    return parts > 0 and dimension % parts == 0 and parts % step == 0


def _is_ordered(arrow: pa.DataType) -> bool:
    plain = (kinds.is_integer, kinds.is_floating, kinds.is_boolean, kinds.is_temporal, kinds.is_decimal)
    return any(is_kind(arrow) for is_kind in (*plain, _is_text, _is_bytes))


def _is_hashed(arrow: pa.DataType) -> bool:
    unfit = (kinds.is_decimal, kinds.is_float16, kinds.is_boolean, kinds.is_duration)
    others = (*unfit, kinds.is_fixed_size_binary)
    return _is_ordered(arrow) and not any(is_kind(arrow) for is_kind in others)


def _is_text(arrow: pa.DataType) -> bool:
    return bool(kinds.is_string(arrow) or kinds.is_large_string(arrow))


def _is_bytes(arrow: pa.DataType) -> bool:
    return bool(kinds.is_binary(arrow) or kinds.is_large_binary(arrow) or kinds.is_fixed_size_binary(arrow))


def _is_list(arrow: pa.DataType) -> bool:
    return bool(kinds.is_list(arrow) or kinds.is_large_list(arrow))


def _is_text_or_list_of_it(arrow: pa.DataType) -> bool:
    return _is_text(arrow.value_type if _is_list(arrow) else arrow)


def _is_vector(arrow: pa.DataType) -> bool:
    return bool(kinds.is_fixed_size_list(arrow) and kinds.is_floating(arrow.value_type))


_Rule = tuple[Callable[[Any], bool], str]
_ORDERED: _Rule = (_is_ordered, "numbers, booleans, text, bytes, dates and times")
_VECTOR: _Rule = (
    _is_vector,
    "vectors, which WriteOptions(vector_columns={'embedding': 768}) makes from an array",
)
_FITTING: dict[str, _Rule] = {
    "BLOOMFILTER": (_is_hashed, "whole numbers, floats, doubles, text, bytes, dates, times or timestamps"),
    "LABEL_LIST": (_is_list, "lists"),
    "NGRAM": (_is_text, "text"),
    TEXT_TYPE: (_is_text_or_list_of_it, "text and lists of text"),
}
