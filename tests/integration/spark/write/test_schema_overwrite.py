"""An overwrite keeps the columns unless it may replace them, and logs which indices are removed."""

import logging
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace import DescribeTableRequest
from lance_namespace.errors import InvalidInputError, TableSchemaValidationError
from pyspark.sql import SparkSession

from airflow_provider_lancens.spark import FileSource, NamespaceSpec, TableLayout
from tests.support.writes import write_files, write_table

pytestmark = pytest.mark.slow

FLIGHTS = "SELECT 1L AS id, 'BER' AS origin, array(1f, 2f) AS v"


@pytest.fixture
def location(spark: SparkSession, spec: NamespaceSpec, table: str) -> str:
    """A table of one flight, with an index."""
    write_table(spark.sql(FLIGHTS), spec, table, options=TableLayout(vector_columns={"v": 2}))
    location = str(spec.connect().describe_table(DescribeTableRequest(id=[table])).location)
    lance.dataset(location).create_scalar_index("origin", "BTREE")
    return location


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("SELECT 1L AS id, array(1f, 2f) AS v", "drops origin;"),
        (f"SELECT *, 1 AS delay FROM ({FLIGHTS})", r"adds delay \(int32\);"),
        ("SELECT 1L AS id, 7 AS origin, array(1f, 2f) AS v", "changes origin from string to int32"),
    ],
    ids=["fewer", "more", "other"],
)
def test_other_columns_are_refused_with_what_would_be_removed(
    spark: SparkSession, spec: NamespaceSpec, table: str, location: str, rows: str, message: str
) -> None:
    with pytest.raises(TableSchemaValidationError, match=message) as refusal:
        write_table(spark.sql(rows), spec, table, mode="overwrite")

    assert "it would drop the indices origin_idx (origin)" in str(refusal.value)
    assert "schema_mode='overwrite'" in str(refusal.value)
    assert lance.dataset(location).version == 2


def test_other_columns_replace_the_existing_ones_on_request(
    spark: SparkSession, spec: NamespaceSpec, table: str, location: str, caplog: pytest.LogCaptureFixture
) -> None:
    rows = spark.sql("SELECT 1 AS id, 'x' AS name")

    with caplog.at_level(logging.INFO):
        write_table(rows, spec, table, mode="overwrite", schema_mode="overwrite")

    assert lance.dataset(location).to_table().to_pylist() == [{"id": 1, "name": "x"}]
    assert "drops origin, v; adds name (string); changes id from int64 to int32" in caplog.text
    assert "version 3 dropped the indices origin_idx (origin)" in caplog.text


def test_the_same_columns_are_kept_and_the_lost_indices_logged(
    spark: SparkSession, spec: NamespaceSpec, table: str, location: str, caplog: pytest.LogCaptureFixture
) -> None:
    before = lance.dataset(location).schema

    write_table(
        spark.sql("SELECT array(3f, 4f) AS v, 'JFK' AS origin, 2 AS id"), spec, table, mode="overwrite"
    )

    after = lance.dataset(location)
    assert after.schema == before
    assert after.to_table().to_pylist() == [{"id": 2, "origin": "JFK", "v": [3.0, 4.0]}]
    assert after.describe_indices() == []
    assert "version 3 dropped the indices origin_idx (origin)" in caplog.text


def test_files_with_other_columns_are_refused_too(
    spark: SparkSession, spec: NamespaceSpec, table: str, location: str, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("id,name\n1,x\n")
    source = FileSource("csv", f"{tmp_path}/a.csv")

    with pytest.raises(TableSchemaValidationError, match="drops origin, v; adds name"):
        write_files(spark, source, spec, table, mode="overwrite")

    write_files(spark, source, spec, table, mode="overwrite", schema_mode="overwrite")
    assert lance.dataset(location).to_table() == pa.table({"id": [1], "name": ["x"]})


@pytest.mark.parametrize("mode", ["append", "create"])
def test_only_an_overwrite_replaces_columns(
    spark: SparkSession, spec: NamespaceSpec, table: str, mode: Any
) -> None:
    with pytest.raises(InvalidInputError, match=f"schema_mode: expected strict or merge for an? {mode}"):
        write_table(spark.range(1), spec, table, mode=mode, schema_mode="overwrite")
