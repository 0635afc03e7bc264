"""Every Spark type, written to Lance and read back by executors: equal, or refused before the write."""

import datetime as dt
import itertools
from typing import Any

import lance
import pytest
from lance_namespace import DeclareTableRequest, DescribeTableRequest
from lance_namespace.errors import InvalidInputError
from pyspark.sql import DataFrame, Row, SparkSession

from airflow_provider_lancens.spark import NamespaceSpec, TableLayout
from tests.pyspark_versions import has_calendar_intervals, has_time, has_variant
from tests.support.reads import read_table
from tests.support.typed_rows import SCHEMA, VALUES
from tests.support.writes import write_table


@pytest.fixture(scope="module")
def there_and_back(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> tuple[list[Row], DataFrame]:
    """A table with a column of each type, padded with nulls: as written, and as read."""
    spec = NamespaceSpec("dir", {"root": str(tmp_path_factory.mktemp("types"))})
    spec.connect().declare_table(DeclareTableRequest(id=["types"]))
    rows = list(itertools.zip_longest(*[[*values, None] for _, values in VALUES]))
    written = spark.createDataFrame(rows, SCHEMA).coalesce(1)
    write_table(written, spec, "types")
    return written.collect(), read_table(spark, spec, "types").cache()


@pytest.mark.parametrize(
    "number", range(len(VALUES)), ids=lambda number: str(SCHEMA[number].dataType.simpleString())
)
def test_extremes_empties_and_nulls_come_back_equal(
    there_and_back: tuple[list[Row], DataFrame], number: int
) -> None:
    written, back = there_and_back

    assert back.schema[number] == SCHEMA[number]
    assert [row[number] for row in back.collect()] == [row[number] for row in written]


def test_a_timestamp_is_the_same_moment_whatever_the_time_zone(
    spark: SparkSession, spec: NamespaceSpec, table: str
) -> None:
    zone = spark.conf.get("spark.sql.session.timeZone") or "UTC"
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        write_table(spark.sql("SELECT timestamp'2020-07-01 12:00:00' AS at"), spec, table)
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)

    [stored] = stored_rows(spec, table)

    assert stored["at"] == dt.datetime(2020, 7, 1, 16, tzinfo=dt.UTC)
    assert read_table(spark, spec, table).selectExpr("cast(at AS string)").first()[0] == "2020-07-01 16:00:00"


@has_variant
def test_a_variant_is_stored_as_two_binary_fields(
    spark: SparkSession, spec: NamespaceSpec, table: str
) -> None:
    write_table(spark.sql("""SELECT parse_json('{"a": 1}') AS v"""), spec, table)

    back = read_table(spark, spec, table)

    assert back.schema["v"].dataType.simpleString() == "struct<value:binary,metadata:binary>"


@has_time
def test_a_time_of_day_comes_back_equal(spark: SparkSession, spec: NamespaceSpec, table: str) -> None:
    write_table(spark.sql("SELECT time'10:11:12.123456' AS v"), spec, table)

    assert read_table(spark, spec, table).first()[0] == dt.time(10, 11, 12, 123456)


@pytest.mark.parametrize("element", ["float", "double"])
def test_vectors_are_fixed_size_lists_in_lance_and_arrays_in_spark(
    spark: SparkSession, spec: NamespaceSpec, table: str, element: str
) -> None:
    vectors = spark.sql(f"SELECT id, transform(sequence(1, 8), x -> cast(x AS {element})) AS v FROM range(5)")
    with_null = vectors.unionByName(spark.sql(f"SELECT 9L AS id, cast(NULL AS array<{element}>) AS v"))

    write_table(with_null, spec, table, options=TableLayout(vector_columns={"v": 8}))

    assert stored_type(spec, table, "v") == f"fixed_size_list<item: {element}>[8]"
    assert read_table(spark, spec, table).orderBy("id").collect() == with_null.orderBy("id").collect()


def test_an_array_stays_a_list_unless_asked(spark: SparkSession, spec: NamespaceSpec, table: str) -> None:
    write_table(spark.sql("SELECT array(1f, 2f) AS v"), spec, table)

    assert stored_type(spec, table, "v") == "list<item: float>"


@pytest.mark.parametrize(
    "value", ["interval '1' year", pytest.param("make_interval(1)", marks=has_calendar_intervals)]
)
def test_what_lance_cannot_hold_is_refused_before_anything_is_written(
    spark: SparkSession, spec: NamespaceSpec, table: str, value: str
) -> None:
    with pytest.raises(InvalidInputError, match="column v"):
        write_table(spark.sql(f"SELECT {value} AS v"), spec, table)


def stored_rows(spec: NamespaceSpec, table: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = open_dataset(spec, table).to_table().to_pylist()
    return rows


def stored_type(spec: NamespaceSpec, table: str, column: str) -> str:
    return str(open_dataset(spec, table).schema.field(column).type)


def open_dataset(spec: NamespaceSpec, table: str) -> lance.LanceDataset:
    return lance.dataset(spec.connect().describe_table(DescribeTableRequest(id=[table])).location)
