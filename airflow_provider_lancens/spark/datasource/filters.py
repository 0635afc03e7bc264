"""Convert Spark's filters to Lance's conditions, if they mean exactly the same to both.

Excluded are floating-point numbers, where the two compare NaN differently, decimals and timestamps, whose
literals could lose precision, and columns that Spark reads as another type than Lance stores.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
from pyspark.sql import datasource as spark

_COMPARISONS: dict[type[spark.Filter], str] = {
    spark.EqualTo: "=",
    spark.GreaterThan: ">",
    spark.GreaterThanOrEqual: ">=",
    spark.LessThan: "<",
    spark.LessThanOrEqual: "<=",
}


def condition_of(condition: spark.Filter, schema: pa.Schema) -> str | None:
    """Return a filter in Lance's SQL; None if Spark must apply it.

    Args:
        condition: Spark's filter.
        schema: the columns as Lance stores them.
    """
    if isinstance(condition, spark.Not):
        inner = condition_of(condition.child, schema)
        return None if inner is None else f"NOT ({inner})"
    path: tuple[str, ...] = getattr(condition, "attribute", ())
    if len(path) != 1 or path[0] not in schema.names or "`" in path[0]:
        return None
    return _of_column(condition, f"`{path[0]}`", schema.field(path[0]).type)


def _of_column(condition: spark.Filter, column: str, arrow: pa.DataType) -> str | None:
    if isinstance(condition, spark.IsNull):
        return f"{column} IS NULL"
    if isinstance(condition, spark.IsNotNull):
        return f"{column} IS NOT NULL"
    if isinstance(condition, spark.In):
        values = [_literal(value, arrow) for value in condition.value]
        texts = [value for value in values if value is not None]
        return f"{column} IN ({', '.join(texts)})" if texts and len(texts) == len(values) else None
    sign = _COMPARISONS.get(type(condition))
    value = _literal(getattr(condition, "value", None), arrow)
    return None if sign is None or value is None else f"{column} {sign} {value}"


def _literal(value: Any, arrow: pa.DataType) -> str | None:
    if isinstance(value, bool):
        return str(value).lower() if pa.types.is_boolean(arrow) else None
    if isinstance(value, int) and pa.types.is_signed_integer(arrow):
        # Lance fails on digits out of the type's range, as those of the lowest value are without its sign.
        return str(value) if abs(value) < 1 << (arrow.bit_width - 1) else None
    if isinstance(value, str) and pa.types.is_string(arrow):
        return "'" + value.replace("'", "''") + "'"
    if type(value) is dt.date and pa.types.is_date32(arrow):
        return f"date '{value.isoformat()}'"
    return None
