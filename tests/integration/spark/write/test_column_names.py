"""Columns of any name, by every way to write and read; unsupported names are refused on the driver."""

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from lance_namespace import DescribeTableRequest
from lance_namespace.errors import InvalidInputError
from pyspark.sql import SparkSession

from airflow_provider_lancens.spark import FileSource, NamespaceSpec, TableLayout
from airflow_provider_lancens.spark.commit.delete import delete_rows
from tests.support.reads import read_table
from tests.support.writes import write_files, write_table

pytestmark = pytest.mark.thorough

KEY, VECTOR, QUOTED, UPPER, LOWER = "unit price, €", "v(1)/[2]", 'it\'s "quoted"', "Total", "total"
NAMES = [KEY, VECTOR, QUOTED, UPPER, LOWER, "a:b;c\\d", "select"]
VALUES = [1, [1.0, 2.0], "x", 10, 20, True, {"a.b": 1, "c`d": "y"}]
NESTED = pa.struct([("a.b", pa.int64()), ("c`d", pa.string())])


def rows(key: int) -> pa.Table:
    types = [pa.int64(), pa.list_(pa.float32()), pa.string(), pa.int64(), pa.int64(), pa.bool_(), NESTED]
    columns = [pa.array([value], kind) for value, kind in zip([key, *VALUES[1:]], types, strict=True)]
    return pa.table(columns, names=NAMES)


def write(
    way: str, spark: SparkSession, spec: NamespaceSpec, table: str, folder: Path, key: int, **how: Any
) -> None:
    pq.write_table(rows(key), folder / f"{key}.parquet")
    if way == "files":
        write_files(spark, FileSource("parquet", f"{folder}/{key}.parquet"), spec, table, **how)
    else:
        write_table(spark.read.parquet(f"{folder}/{key}.parquet"), spec, table, **how)


@pytest.mark.parametrize("way", ["frame", "files"])
def test_columns_of_any_name_are_written_and_read(
    spark: SparkSession, spec: NamespaceSpec, table: str, tmp_path: Path, way: str
) -> None:
    sensitive = "spark.sql.caseSensitive"
    spark.conf.set(sensitive, "true")  # otherwise Spark refuses names that differ only in case
    try:
        write(way, spark, spec, table, tmp_path, 1, options=TableLayout(vector_columns={VECTOR: 2}))
        write(way, spark, spec, table, tmp_path, 2)
        write(way, spark, spec, table, tmp_path, 2, mode="upsert", on=[KEY, UPPER])

        condition = f"`{KEY}` = 2 AND `{QUOTED}` = 'x' AND `{LOWER}` = 20"
        [row] = read_table(spark, spec, table, filter=condition).collect()
        assert row.asDict(recursive=True) == dict(zip(NAMES, [2, *VALUES[1:]], strict=True))
        chosen = read_table(spark, spec, table, columns=[LOWER, KEY], version=1)
        assert [tuple(one) for one in chosen.collect()] == [(20, 1)]
    finally:
        spark.conf.unset(sensitive)

    assert delete_rows(spec, table, f"`{KEY}` = 1").deleted == 1
    location = spec.connect().describe_table(DescribeTableRequest(id=[table])).location
    lance.dataset(location).create_scalar_index(KEY, "BTREE")
    assert lance.dataset(location).to_table(filter=f"`{KEY}` = 2").num_rows == 1


@pytest.mark.parametrize(
    ("select", "message"),
    [
        ("id AS `a``b`", "column 'a`b': the name contains a backtick"),
        ("id AS `a.b`", r"column 'a\.b': the name contains a dot"),
        ("id AS _rowid", "column '_rowid': Lance reserves this name"),
        ("id AS _rowaddr", "column '_rowaddr': Lance reserves this name"),
        ("map() AS m", "column m: an empty map"),
        ("struct(map() AS m) AS s", r"column s\.m: an empty map"),
        ("named_struct('a', id, 'a', id) AS s", "column 's': two fields are named 'a'"),
    ],
)
def test_unsupported_column_names_are_refused_on_the_driver(
    spark: SparkSession, spec: NamespaceSpec, table: str, select: str, message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        write_table(spark.range(3).selectExpr(select), spec, table)

    assert spec.connect().describe_table(DescribeTableRequest(id=[table])).version is None


def test_rows_without_columns_are_refused_on_the_driver(
    spark: SparkSession, spec: NamespaceSpec, table: str
) -> None:
    with pytest.raises(InvalidInputError, match="the rows have no columns"):
        write_table(spark.range(3).select(), spec, table)


def test_an_upsert_key_that_lance_cannot_match_is_refused(
    spark: SparkSession, spec: NamespaceSpec, table: str
) -> None:
    frame = spark.range(3).toDF('a"b')
    write_table(frame, spec, table)

    with pytest.raises(InvalidInputError, match="Lance cannot match rows by column"):
        write_table(frame, spec, table, mode="upsert", on=['a"b'])


def test_unsupported_column_names_of_files_can_be_renamed(
    spark: SparkSession, spec: NamespaceSpec, table: str, tmp_path: Path
) -> None:
    pq.write_table(pa.table({"a.b": [1, 2], "c`d": [3, 4]}), tmp_path / "a.parquet")
    source = FileSource("parquet", f"{tmp_path}/a.parquet", filter="`c``d` > 3")

    with pytest.raises(InvalidInputError, match=r"column 'a\.b': .*; column 'c`d': "):
        write_files(spark, source, spec, table)

    renamed = FileSource("parquet", source.paths, filter=source.filter, renames={"a.b": "a_b", "c`d": "c_d"})
    write_files(spark, renamed, spec, table)
    location = spec.connect().describe_table(DescribeTableRequest(id=[table])).location
    assert lance.dataset(location).to_table().to_pylist() == [{"a_b": 2, "c_d": 4}]
