from typing import Any

import pyarrow as pa
import pytest
from lance.blob import BlobType
from lance_namespace.errors import InvalidInputError
from pyspark.sql import types as spark

from airflow_provider_lancens.spark.blobs import inner_blob
from airflow_provider_lancens.spark.types import arrow_schema, arrow_type, spark_schema, spark_type
from tests.pyspark_versions import has_calendar_intervals

BOTH_WAYS = [
    (spark.BooleanType(), pa.bool_()),
    (spark.ByteType(), pa.int8()),
    (spark.ShortType(), pa.int16()),
    (spark.IntegerType(), pa.int32()),
    (spark.LongType(), pa.int64()),
    (spark.FloatType(), pa.float32()),
    (spark.DoubleType(), pa.float64()),
    (spark.StringType(), pa.string()),
    (spark.BinaryType(), pa.binary()),
    (spark.DecimalType(38, 18), pa.decimal128(38, 18)),
    (spark.DateType(), pa.date32()),
    (spark.TimestampType(), pa.timestamp("us", "UTC")),
    (spark.TimestampNTZType(), pa.timestamp("us")),
    (spark.DayTimeIntervalType(), pa.duration("us")),
    (spark.NullType(), pa.null()),
    (spark.ArrayType(spark.DecimalType(5, 2)), pa.list_(pa.decimal128(5, 2))),
    (spark.MapType(spark.StringType(), spark.LongType()), pa.map_(pa.string(), pa.int64())),
    (
        spark.StructType([spark.StructField("x", spark.ArrayType(spark.FloatType()))]),
        pa.struct([("x", pa.list_(pa.float32()))]),
    ),
]


@pytest.mark.parametrize(("in_spark", "in_arrow"), BOTH_WAYS, ids=lambda value: str(value))
def test_a_type_maps_to_its_counterpart_and_back(in_spark: spark.DataType, in_arrow: pa.DataType) -> None:
    assert arrow_type(in_spark, "c") == in_arrow
    assert spark_type(in_arrow, "c") == in_spark


@pytest.mark.parametrize(
    ("in_arrow", "in_spark"),
    [
        (pa.uint8(), spark.ShortType()),
        (pa.uint32(), spark.LongType()),
        (pa.uint64(), spark.DecimalType(20, 0)),
        (pa.float16(), spark.FloatType()),
        (pa.large_string(), spark.StringType()),
        (pa.large_binary(), spark.BinaryType()),
        (pa.binary(16), spark.BinaryType()),
        (pa.date64(), spark.DateType()),
        (pa.timestamp("ns", "Europe/Paris"), spark.TimestampType()),
        (pa.timestamp("s"), spark.TimestampNTZType()),
        (pa.list_(pa.float32(), 768), spark.ArrayType(spark.FloatType())),
        (pa.large_list(pa.int8()), spark.ArrayType(spark.ByteType())),
        (pa.dictionary(pa.int8(), pa.string()), spark.StringType()),
    ],
    ids=lambda value: str(value),
)
def test_types_of_other_writers_map_to_spark_types(in_arrow: pa.DataType, in_spark: spark.DataType) -> None:
    assert spark_type(in_arrow, "c") == in_spark


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("YearMonthIntervalType", "number of months"),
        pytest.param("CalendarIntervalType", "day-time", marks=has_calendar_intervals),
    ],
)
def test_a_type_unsupported_by_lance_is_refused_with_its_path_in_the_schema(name: str, advice: str) -> None:
    data_type: spark.DataType = getattr(spark, name)()
    nested = spark.StructType([spark.StructField("deep", spark.ArrayType(data_type))])

    with pytest.raises(InvalidInputError, match=rf"column top\.deep\[\]: .*{advice}"):
        arrow_schema(spark.StructType([spark.StructField("top", nested)]))


def test_a_type_unsupported_by_spark_is_refused_by_name() -> None:
    with pytest.raises(InvalidInputError, match=r"column wide: .*leave it out"):
        spark_schema(pa.schema([("wide", pa.decimal256(60, 2))]))


@pytest.mark.parametrize(
    ("around", "path"),
    [
        (lambda blob: pa.struct([("n", pa.int8()), ("b", blob)]), r"c\.b"),
        (lambda blob: pa.list_(blob), r"c\[\]"),
        (lambda blob: pa.map_(pa.string(), pa.struct([("b", blob)])), r"c\.value\.b"),
    ],
)
def test_a_blob_within_another_value_is_refused_by_its_path(around: Any, path: str) -> None:
    arrow = around(BlobType())

    with pytest.raises(
        InvalidInputError, match=rf"column {path}: Spark reads a blob only if.*leave the column"
    ):
        spark_schema(pa.schema([("c", arrow)]))
    assert inner_blob(arrow, "c") == path.replace("\\", "")


def test_a_column_without_blobs_or_that_is_a_blob_has_no_blob_within() -> None:
    without = pa.map_(pa.string(), pa.struct([("a", pa.list_(pa.list_(pa.int8(), 3)))]))

    assert inner_blob(without, "c") is None
    assert inner_blob(BlobType(), "c") is None


def test_every_column_of_a_new_data_set_is_nullable() -> None:
    never_null = spark.StructType([spark.StructField("id", spark.LongType(), nullable=False)])

    assert arrow_schema(never_null).field("id").nullable


def test_a_map_without_a_key_type_is_refused_with_its_path() -> None:
    nothing = spark.MapType(spark.NullType(), spark.NullType())
    schema = spark.StructType([spark.StructField("m", spark.ArrayType(nothing))])

    with pytest.raises(InvalidInputError, match=r"column m\[\]: an empty map such as map\(\) .*; cast it"):
        arrow_schema(schema)


def test_a_vector_column_is_a_fixed_size_list_only_on_request() -> None:
    array = spark.ArrayType(spark.FloatType())
    schema = spark.StructType([spark.StructField("v", array), spark.StructField("w", array)])

    assert arrow_schema(schema, {"v": 3}).types == [pa.list_(pa.float32(), 3), pa.list_(pa.float32())]


@pytest.mark.parametrize("column", ["missing", "text"])
def test_a_vector_column_must_be_an_array_of_floats(column: str) -> None:
    schema = spark.StructType([spark.StructField("text", spark.StringType())])

    with pytest.raises(InvalidInputError, match=rf"vector_columns\['{column}'\]"):
        arrow_schema(schema, {column: 3})
