"""How many bytes a row takes in Arrow, as an expression that Spark computes along with the row."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import add

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as sql
from pyspark.sql import types as spark

from airflow_provider_lancens.spark.types import arrow_type


def row_bytes(columns: Iterable[tuple[Column, spark.DataType]]) -> Column | None:
    """The bytes of some values together, as a double; None where lengths alone don't tell them.

    Args:
        columns: the values with their types.

    Raises:
        InvalidInputError: (13) one is of a type that Lance can't hold.
    """
    counted = [_bytes(value, data_type) for value, data_type in columns]
    told = [column for column in counted if column is not None]
    return reduce(add, told, sql.lit(0.0)) if len(told) == len(counted) else None


def fixed_bytes(data_type: spark.DataType) -> int | None:
    """The bytes of every value of a type, or None where values differ."""
    arrow = arrow_type(data_type, "")
    if pa.types.is_null(arrow):
        return 0
    if pa.types.is_primitive(arrow) or pa.types.is_decimal(arrow):
        return int(arrow.bit_width) // 8 or 1
    return None


def _bytes(value: Column, data_type: spark.DataType) -> Column | None:
    fixed = fixed_bytes(data_type)
    if fixed is not None:
        return sql.lit(float(fixed))
    match data_type:
        case spark.StringType() | spark.BinaryType():
            return _or_zero(sql.octet_length(value))
        case spark.ArrayType() if (width := fixed_bytes(data_type.elementType)) is not None:
            return _or_zero(sql.size(value)) * sql.lit(float(width))
        case spark.StructType() if _is_unambiguous(data_type):
            return row_bytes((value.getField(field.name), field.dataType) for field in data_type.fields)
    return None  # to look at each element of a map would cost more than it brings


def _or_zero(length: Column) -> Column:
    # That of null is null or -1, as the session has it; the greatest passes nulls over.
    return sql.greatest(length, sql.lit(0))


def _is_unambiguous(struct: spark.StructType) -> bool:
    return len({name.lower() for name in struct.names}) == len(struct.names)
