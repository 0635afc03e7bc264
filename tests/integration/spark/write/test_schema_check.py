"""Rows of narrower types, or without any value in a column, are written by both ways."""

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from lance_namespace import DescribeTableRequest
from lance_namespace.errors import TableSchemaValidationError
from pyspark.sql import SparkSession

from airflow_provider_lancens.spark import FileSource, NamespaceSpec, TableLayout
from tests.support.writes import write_files, write_table

pytestmark = pytest.mark.thorough

WIDE = """
    SELECT 0L AS id, cast(0.5 AS double) AS d, cast(0.5 AS float) AS f, cast(1.5 AS decimal(20, 2)) AS price,
        timestamp'2020-07-01 12:00:00' AS at, timestamp_ntz'2020-07-01 12:00:00' AS local, 'x' AS name,
        array(1f, 2f) AS v, struct(1.5D AS n, 'x' AS w) AS s, array('x') AS tags, map('x', 1L) AS m
"""
NARROW = """
    SELECT 1 AS id, 7 AS d, 7Y AS f, 7 AS price, date'2020-07-01' AS at, date'2020-07-01' AS local,
        cast(NULL AS void) AS name, array(1Y, 2Y) AS v, struct(7 AS n, NULL AS w) AS s, array() AS tags,
        map('x', NULL) AS m
"""


@pytest.fixture
def wide(spark: SparkSession, spec: NamespaceSpec, table: str) -> lance.LanceDataset:
    """A table of wide types with one row."""
    write_table(spark.sql(WIDE), spec, table, options=TableLayout(vector_columns={"v": 2}))
    return lance.dataset(spec.connect().describe_table(DescribeTableRequest(id=[table])).location)


def widened(data: lance.LanceDataset, **other: Any) -> dict[str, Any]:
    """The row written from the narrow one, in a dataset with unchanged columns."""
    newest = lance.dataset(data.uri)
    assert newest.schema == data.schema
    [row] = newest.to_table(filter="id = 1").to_pylist()
    return dict(row)


def expected(midnight_utc: int) -> dict[str, Any]:
    return {
        "id": 1,
        "d": 7.0,
        "f": 7.0,
        "price": Decimal("7.00"),
        "at": dt.datetime(2020, 7, 1, midnight_utc, tzinfo=dt.UTC),
        "local": dt.datetime(2020, 7, 1),  # noqa: DTZ001 it has no zone
        "name": None,
        "v": [1.0, 2.0],
        "s": {"n": 7.0, "w": None},
        "tags": [],
        "m": [("x", None)],
    }


@pytest.mark.parametrize(("mode", "on"), [("append", None), ("upsert", ["id"]), ("overwrite", None)])
def test_a_data_frame_of_narrower_types_fits(
    spark: SparkSession, spec: NamespaceSpec, table: str, wide: lance.LanceDataset, mode: Any, on: Any
) -> None:
    write_table(spark.sql(NARROW), spec, table, mode=mode, on=on)

    assert widened(wide) == expected(midnight_utc=0)


def test_a_date_is_midnight_in_the_time_zone_of_the_session(
    spark: SparkSession, spec: NamespaceSpec, table: str, wide: lance.LanceDataset
) -> None:
    zone = spark.conf.get("spark.sql.session.timeZone") or "UTC"
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        write_table(spark.sql(NARROW), spec, table)
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)

    assert widened(wide) == expected(midnight_utc=4)


@pytest.mark.parametrize(("mode", "on"), [("append", None), ("upsert", ["id"])])
def test_files_of_narrower_types_fit(
    spark: SparkSession,
    spec: NamespaceSpec,
    table: str,
    wide: lance.LanceDataset,
    tmp_path: Path,
    mode: Any,
    on: Any,
) -> None:
    day = dt.date(2020, 7, 1)
    rows = pa.table(
        {
            "id": pa.array([1], pa.uint8()),
            "d": pa.array([7], pa.int32()),
            "f": pa.array([7], pa.int8()),
            "price": pa.array([7], pa.int32()),
            "at": pa.array([day]),
            "local": pa.array([day]),
            "name": pa.array([None], pa.null()),
            "v": pa.array([[1, 2]], pa.list_(pa.int8())),
            "s": pa.array([{"n": 7, "w": None}], pa.struct([("n", pa.int32()), ("w", pa.null())])),
            "tags": pa.array([[]], pa.list_(pa.null())),
            "m": pa.array([[("x", None)]], pa.map_(pa.string(), pa.null())),
        }
    )
    pq.write_table(rows, tmp_path / "a.parquet")

    write_files(spark, FileSource("parquet", f"{tmp_path}/a.parquet"), spec, table, mode=mode, on=on)

    assert widened(wide) == expected(midnight_utc=0)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("csv", "id,d,name\n1,7,\n2,8,\n"),
        ("json", "\n".join(json.dumps({"id": n, "d": n + 6, "name": None}) for n in (1, 2))),
    ],
)
def test_files_of_text_without_any_value_in_a_column_fit(
    spark: SparkSession, spec: NamespaceSpec, table: str, tmp_path: Path, kind: Any, text: str
) -> None:
    write_table(spark.sql("SELECT 0L AS id, 0.5D AS d, 'x' AS name"), spec, table)
    (tmp_path / "a").write_text(text)

    write_files(spark, FileSource(kind, f"{tmp_path}/a", casts={"d": "int32"}), spec, table)

    location = spec.connect().describe_table(DescribeTableRequest(id=[table])).location
    rows = lance.dataset(location).to_table(filter="id > 0").to_pylist()
    assert rows == [{"id": n, "d": n + 6.0, "name": None} for n in (1, 2)]


@pytest.mark.parametrize(
    ("narrow", "message"),
    [
        ("7L AS d", "d is int64, but double in the table"),
        ("7.5D AS f", "f is double, but float in the table"),
        (
            "cast(7 AS decimal(38, 2)) AS price",
            r"price is decimal128\(38, 2\), but decimal128\(20, 2\) in the table",
        ),
        (
            "timestamp_ntz'2020-07-01 00:00:00' AS at",
            r"at is timestamp\[us\], but timestamp\[us, tz=UTC\] in the table",
        ),
    ],
    ids=["long", "double", "decimal", "zone"],
)
def test_a_lossy_conversion_is_refused_with_both_types(
    spark: SparkSession, spec: NamespaceSpec, table: str, wide: lance.LanceDataset, narrow: str, message: str
) -> None:
    name = narrow.rpartition(" ")[2]
    rows = spark.sql(NARROW).drop(name).selectExpr("*", narrow)

    with pytest.raises(TableSchemaValidationError, match=message):
        write_table(rows, spec, table)

    assert lance.dataset(wide.uri).version == 1
