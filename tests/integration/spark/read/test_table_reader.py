from collections.abc import Callable
from datetime import timedelta

import lance
import pyarrow as pa
import pytest
from lance_namespace import DescribeTableRequest
from lance_namespace.errors import (
    InvalidInputError,
    TableColumnNotFoundError,
    TableVersionNotFoundError,
)
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from airflow_provider_lancens.spark import NamespaceSpec
from airflow_provider_lancens.spark.maintenance.clean_up import clean_up_versions
from tests.support.reads import read_table
from tests.support.writes import write_table


@pytest.fixture
def location(spec: NamespaceSpec, table: str) -> str:
    return str(spec.connect().describe_table(DescribeTableRequest(id=[table])).location)


def test_a_pinned_read_does_not_see_later_commits(
    spark: SparkSession, spec: NamespaceSpec, table: str, ids: Callable[..., list[int]]
) -> None:
    write_table(spark.range(3), spec, table)
    newest = read_table(spark, spec, table)
    write_table(spark.range(3, 6), spec, table)

    assert newest.count() == 3
    assert ids(1) == [0, 1, 2]
    assert ids() == [0, 1, 2, 3, 4, 5]


def test_a_version_that_is_cleaned_up_before_it_is_read_is_told(
    spark: SparkSession, spec: NamespaceSpec, table: str
) -> None:
    write_table(spark.range(3), spec, table)
    pinned = read_table(spark, spec, table, version=1)
    write_table(spark.range(3, 6), spec, table, mode="overwrite")
    clean_up_versions(spec, table, older_than=timedelta(0))

    with pytest.raises(
        PySparkException, match=r"version 1 has no manifest or no files any more: it was cleaned up"
    ):
        pinned.collect()


def test_columns_and_rows_are_selected_by_lance(spark: SparkSession, spec: NamespaceSpec, table: str) -> None:
    write_table(spark.range(10).selectExpr("id", "id % 2 AS odd", "'x' AS unused"), spec, table)

    picked = read_table(spark, spec, table, columns=["odd", "id"], filter="id > 6 AND odd = 1")

    assert picked.columns == ["odd", "id"]
    assert sorted(map(tuple, picked.collect())) == [(1, 7), (1, 9)]


def test_a_filter_may_use_a_column_that_is_not_selected(
    spark: SparkSession, spec: NamespaceSpec, table: str
) -> None:
    write_table(spark.range(10).selectExpr("id", "id * 10 AS ten"), spec, table)

    rows = read_table(spark, spec, table, columns=["ten"], filter="id = 3").collect()

    assert [row["ten"] for row in rows] == [30]


def test_deleted_rows_are_not_read(
    spark: SparkSession, spec: NamespaceSpec, table: str, location: str, ids: Callable[..., list[int]]
) -> None:
    write_table(spark.range(6), spec, table)
    lance.dataset(location).delete("id < 4")

    assert ids() == [4, 5]
    assert len(ids(1)) == 6


def test_small_fragments_are_read_in_one_task(spark: SparkSession, spec: NamespaceSpec, table: str) -> None:
    write_table(spark.range(0, 100, 1, 8), spec, table)

    assert read_table(spark, spec, table).rdd.getNumPartitions() == 1


def test_data_of_other_writers_is_read(
    spark: SparkSession, spec: NamespaceSpec, table: str, location: str
) -> None:
    rows = pa.table(
        {
            "large": pa.array(["a", None], pa.large_string()),
            "unsigned": pa.array([2**64 - 1, 0], pa.uint64()),
            "half": pa.array([1.5, None], pa.float32()).cast(pa.float16()),
            "words": pa.array(["x", "y"]).dictionary_encode(),
            "vector": pa.array([[1.0, 2.0], None], pa.list_(pa.float32(), 2)),
            "nanos": pa.array([1_000_000_000, None], pa.timestamp("ns")),
        }
    )
    lance.write_dataset(rows, location)

    first, second = read_table(spark, spec, table).collect()

    assert (first["large"], int(first["unsigned"]), first["half"], first["words"]) == (
        "a",
        2**64 - 1,
        1.5,
        "x",
    )
    assert (first["vector"], second["vector"]) == ([1.0, 2.0], None)
    assert first["nanos"].isoformat() == "1970-01-01T00:00:01"


def test_a_declared_table_without_data_is_reported_as_such(
    spark: SparkSession, spec: NamespaceSpec, table: str
) -> None:
    with pytest.raises(TableVersionNotFoundError, match="nothing has been written"):
        read_table(spark, spec, table)


def test_a_missing_version_is_refused(spark: SparkSession, spec: NamespaceSpec, table: str) -> None:
    write_table(spark.range(3), spec, table)

    with pytest.raises(TableVersionNotFoundError, match="no version 7"):
        read_table(spark, spec, table, version=7)


@pytest.mark.parametrize("columns", [["nope"], []])
def test_missing_columns_are_refused(
    spark: SparkSession, spec: NamespaceSpec, table: str, columns: list[str]
) -> None:
    write_table(spark.range(3), spec, table)

    with pytest.raises(TableColumnNotFoundError, match="among \\['id'\\]"):
        read_table(spark, spec, table, columns=columns)


@pytest.mark.parametrize("condition", ["nope > 1", "id >", "id", "id > 1 adn id = 2", "id > 1) OR (id = 2"])
def test_an_invalid_filter_is_refused_on_the_driver(
    spark: SparkSession, spec: NamespaceSpec, table: str, condition: str
) -> None:
    write_table(spark.range(3), spec, table)

    with pytest.raises(InvalidInputError, match="filter"):
        read_table(spark, spec, table, filter=condition)
