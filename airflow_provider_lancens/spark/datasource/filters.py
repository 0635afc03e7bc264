"""Convert Spark's filters to conditions that Lance evaluates, if they mean exactly the same to both.

Excluded are timestamps, whose literals could lose precision, and columns that Spark reads as another type
than Lance stores.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark.sql import datasource as spark

from airflow_provider_lancens.conditions import Condition
from airflow_provider_lancens.conditions.tree import (
    INVERSE,
    ColumnPath,
    Compare,
    IsIn,
    IsNull,
    Node,
    TextTest,
    Value,
)

_COMPARISONS: dict[type[spark.Filter], str] = {
    spark.EqualTo: "=",
    spark.GreaterThan: ">",
    spark.GreaterThanOrEqual: ">=",
    spark.LessThan: "<",
    spark.LessThanOrEqual: "<=",
}
_TEXT_TESTS: dict[type[spark.Filter], str] = {
    spark.StringStartsWith: "starts_with",
    spark.StringEndsWith: "ends_with",
    spark.StringContains: "contains",
}


def condition_of(condition: spark.Filter, schema: pa.Schema) -> Condition | None:
    """Return a filter as a condition; None if Spark must apply it.

    Args:
        condition: Spark's filter.
        schema: the columns as Lance stores them.
    """
    negated = isinstance(condition, spark.Not)
    inner = condition.child if isinstance(condition, spark.Not) else condition
    column = _column(getattr(inner, "attribute", ()), schema)
    tree = None if column is None else _of_column(inner, column, negated)
    return None if tree is None else Condition(repr(condition), tree)


def _column(path: tuple[str, ...], schema: pa.Schema) -> ColumnPath | None:
    fields: Any = schema
    for name in path:
        found = [field for field in fields if field.name == name]
        if len(found) != 1 or "`" in name:
            return None
        fields = found[0].type if pa.types.is_struct(found[0].type) else ()
    return ColumnPath(tuple(path), found[0].type) if path else None


def _of_column(condition: spark.Filter, column: ColumnPath, negated: bool) -> Node | None:
    if isinstance(condition, spark.IsNull | spark.IsNotNull):
        return IsNull(column, isinstance(condition, spark.IsNotNull) is not negated)
    if isinstance(condition, spark.In):
        values = [_value(value, column.type) for value in condition.value]
        known = tuple(value for value in values if value is not None)
        return IsIn(column, known, negated) if known and len(known) == len(values) else None
    value = _value(getattr(condition, "value", None), column.type)
    if value is None:
        return None
    if isinstance(value, str) and type(condition) in _TEXT_TESTS:
        return TextTest(_TEXT_TESTS[type(condition)], column, value, negated)
    sign = _COMPARISONS.get(type(condition))
    if sign is None or (isinstance(value, bool) and sign != "="):
        return None
    return Compare(INVERSE[sign] if negated else sign, column, value)


def _value(value: Any, arrow: pa.DataType) -> Value | None:
    """Return a value as the column stores it; None if Spark and Lance have different types."""
    types = pa.types
    if isinstance(value, bool):
        return value if types.is_boolean(arrow) else None
    if isinstance(value, int) and types.is_signed_integer(arrow):
        return value if -(1 << (arrow.bit_width - 1)) <= value < 1 << (arrow.bit_width - 1) else None
    if isinstance(value, float) and (types.is_float32(arrow) or types.is_float64(arrow)):
        return value
    if isinstance(value, str) and types.is_string(arrow):
        return value
    if isinstance(value, Decimal) and types.is_decimal128(arrow):
        units = value.scaleb(arrow.scale)
        return int(units) if units == units.to_integral_value() else None
    if type(value) is dt.date and types.is_date32(arrow):
        return (value - dt.date(1970, 1, 1)).days
    return None
