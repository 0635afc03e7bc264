"""Mapping between Spark and Arrow types (docs/types.md has the table).

Lance stores the type that `arrow_type` returns. Nullability isn't carried over, as in Spark's own file
sources: a column without nulls in one DataFrame may have nulls in the next one appended.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import types as spark

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.spark.blobs import is_blob
from airflow_provider_lancens.spark.table.column_fit import with_vectors

_ATOMS: dict[str, pa.DataType] = {
    "BooleanType": pa.bool_(),
    "ByteType": pa.int8(),
    "ShortType": pa.int16(),
    "IntegerType": pa.int32(),
    "LongType": pa.int64(),
    "FloatType": pa.float32(),
    "DoubleType": pa.float64(),
    "StringType": pa.string(),
    "CharType": pa.string(),
    "VarcharType": pa.string(),
    "BinaryType": pa.binary(),
    "DateType": pa.date32(),
    "TimestampType": pa.timestamp("us", "UTC"),
    "TimestampNTZType": pa.timestamp("us"),
    "DayTimeIntervalType": pa.duration("us"),
    "TimeType": pa.time64("ns"),
    "NullType": pa.null(),
    "VariantType": pa.struct([("value", pa.binary()), ("metadata", pa.binary())]),
}
"""Arrow's types by class name, since the lower PySpark versions lack some of the classes."""

_ADVICE = {
    "YearMonthIntervalType": "cast it to a number of months",
    "CalendarIntervalType": "cast it to a day-time interval, or split it into columns",
    "GeometryType": "convert it to binary with st_asbinary",
    "GeographyType": "convert it to binary with st_asbinary",
}

_SPARK_DIGITS = 38

_SPARK_ATOMS: dict[pa.DataType, spark.DataType] = {
    pa.null(): spark.NullType(),
    pa.bool_(): spark.BooleanType(),
    pa.int8(): spark.ByteType(),
    pa.int16(): spark.ShortType(),
    pa.int32(): spark.IntegerType(),
    pa.int64(): spark.LongType(),
    pa.uint8(): spark.ShortType(),
    pa.uint16(): spark.IntegerType(),
    pa.uint32(): spark.LongType(),
    pa.uint64(): spark.DecimalType(20, 0),
    pa.float16(): spark.FloatType(),
    pa.float32(): spark.FloatType(),
    pa.float64(): spark.DoubleType(),
    pa.string(): spark.StringType(),
    pa.large_string(): spark.StringType(),
    pa.string_view(): spark.StringType(),
    pa.binary(): spark.BinaryType(),
    pa.large_binary(): spark.BinaryType(),
    pa.binary_view(): spark.BinaryType(),
    pa.date32(): spark.DateType(),
    pa.date64(): spark.DateType(),
}


def arrow_schema(schema: spark.StructType, vectors: Mapping[str, int] | None = None) -> pa.Schema:
    """Return the schema of a new dataset for a DataFrame.

    Args:
        schema: the DataFrame's schema.
        vectors: array columns to store as fixed-size lists, with their dimension.

    Raises:
        InvalidInputError: (13) a column has a type that Lance can't hold; the message names it and says
            what to do. Names are checked by `columns.check_columns`.
    """
    stored = pa.schema([(field.name, arrow_type(field.dataType, field.name)) for field in schema.fields])
    return with_vectors(stored, vectors) if vectors else stored


def arrow_type(data_type: spark.DataType, path: str) -> pa.DataType:
    """Return the Arrow type that a Spark type is stored as.

    Raises:
        InvalidInputError: (13) there is none; the message names the column by `path`.
    """
    match data_type:
        case spark.DecimalType():
            return pa.decimal128(data_type.precision, data_type.scale)
        case spark.ArrayType():
            return pa.list_(arrow_type(data_type.elementType, f"{path}[]"))
        case spark.MapType():
            if isinstance(data_type.keyType, spark.NullType):
                raise spec_errors.InvalidInputError(
                    f"column {path}: an empty map such as map() has no key type; cast it to the "
                    "intended type, such as map<string, string>"
                )
            key = arrow_type(data_type.keyType, f"{path}.key")
            return pa.map_(key, arrow_type(data_type.valueType, f"{path}.value"))
        case spark.StructType():
            return pa.struct([(f.name, arrow_type(f.dataType, f"{path}.{f.name}")) for f in data_type.fields])
        case spark.UserDefinedType():
            return arrow_type(data_type.sqlType(), path)
    name = type(data_type).__name__
    if name not in _ATOMS:
        advice = _ADVICE.get(name, "cast it to another type")
        raise spec_errors.InvalidInputError(f"column {path}: Lance has no type for Spark's {name}; {advice}")
    return _ATOMS[name]


def spark_schema(schema: pa.Schema) -> spark.StructType:
    """Return the schema of the DataFrame that a dataset is read as; every column is nullable.

    Raises:
        InvalidInputError: (13) Spark has no type for a column; the message says to leave it out.
    """
    return spark.StructType([_spark_field(schema.field(i)) for i in range(len(schema))])


def spark_type(arrow: pa.DataType, path: str) -> spark.DataType:
    """Return the Spark type that an Arrow type is read as.

    Raises:
        InvalidInputError: (13) there is none; the message names the column by `path`.
    """
    if isinstance(arrow, pa.BaseExtensionType):  # which may have no hash
        if is_blob(arrow):
            raise spec_errors.InvalidInputError(
                f"column {path}: Spark reads a blob only if it is a column of its own, not within a struct, "
                "an array or a map; leave the column out with columns=[...]"
            )
        return spark_type(arrow.storage_type, path)
    if arrow in _SPARK_ATOMS:
        return _SPARK_ATOMS[arrow]
    for matches, convert in _FAMILIES:
        if matches(arrow):
            return convert(arrow, path)
    raise spec_errors.InvalidInputError(
        f"column {path}: Spark has no type for Lance's {arrow}; leave it out with columns=[...]"
    )


def _spark_field(field: pa.Field, parent: str = "") -> spark.StructField:
    return spark.StructField(field.name, spark_type(field.type, f"{parent}{field.name}"), nullable=True)


def _is_spark_decimal(arrow: pa.DataType) -> bool:
    return pa.types.is_decimal(arrow) and bool(0 <= arrow.scale <= arrow.precision <= _SPARK_DIGITS)


def _time(arrow: pa.DataType, path: str) -> spark.DataType:
    if not hasattr(spark, "TimeType"):
        raise spec_errors.InvalidInputError(
            f"column {path}: this Spark has no type for {arrow}; leave it out with columns=[...]"
        )
    return spark.TimeType()


def _array(arrow: pa.DataType, path: str) -> spark.DataType:
    return spark.ArrayType(spark_type(arrow.value_type, f"{path}[]"))


def _map(arrow: pa.DataType, path: str) -> spark.DataType:
    key = spark_type(arrow.key_type, f"{path}.key")
    return spark.MapType(key, spark_type(arrow.item_type, f"{path}.value"))


def _struct(arrow: pa.DataType, path: str) -> spark.DataType:
    return spark.StructType([_spark_field(arrow.field(i), f"{path}.") for i in range(arrow.num_fields)])


_FAMILIES: list[tuple[Callable[[Any], bool], Callable[[Any, str], spark.DataType]]] = [
    (_is_spark_decimal, lambda t, _: spark.DecimalType(t.precision, t.scale)),
    (pa.types.is_timestamp, lambda t, _: spark.TimestampType() if t.tz else spark.TimestampNTZType()),
    (pa.types.is_duration, lambda *_: spark.DayTimeIntervalType()),
    (pa.types.is_time, _time),
    (pa.types.is_fixed_size_binary, lambda *_: spark.BinaryType()),
    (pa.types.is_dictionary, lambda t, path: spark_type(t.value_type, path)),
    (pa.types.is_list, _array),
    (pa.types.is_large_list, _array),
    (pa.types.is_fixed_size_list, _array),
    (pa.types.is_map, _map),
    (pa.types.is_struct, _struct),
]
