"""Few rows of very many columns, by every way to write: Spark's plan grows with the columns.

300 are too many for a plan whose depth is the number of columns.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from lance_namespace import DescribeTableRequest
from pyspark.sql import SparkSession

from airflow_provider_lancens.spark import FileSource, NamespaceSpec
from tests.integration.spark.write.wide_rows import expected_row, wide_rows, write_and_read
from tests.support.reads import read_table
from tests.support.writes import write_files, write_table

TREE = Path(__file__).parents[4]

pytestmark = pytest.mark.thorough

MANY = 2_000
of_many_columns = pytest.mark.parametrize("columns", [300, pytest.param(MANY, marks=pytest.mark.long)])


@of_many_columns
def test_a_wide_data_frame_is_written_and_read(
    spark: SparkSession, spec: NamespaceSpec, table: str, columns: int
) -> None:
    back = write_and_read(spark, spec, table, columns)

    assert [list(row) for row in back.collect()] == [expected_row(number, columns) for number in range(5)]


@of_many_columns
@pytest.mark.long  # `test_spark_connect` covers few columns there, and the test above many in a session
def test_a_wide_data_frame_is_written_and_read_through_spark_connect(
    server: str, spec: NamespaceSpec, table: str, columns: int
) -> None:
    arguments = [server, spec.properties["root"], table, str(columns)]
    command = [sys.executable, "-m", "tests.integration.spark.write.wide_rows", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=TREE)

    assert done.returncode == 0, done.stderr[-5000:]


@of_many_columns
def test_wide_files_are_written_and_read(
    spark: SparkSession, spec: NamespaceSpec, table: str, tmp_path: Path, columns: int
) -> None:
    kinds = [pa.array([1, 2]), pa.array(["a", None]), pa.array([[1.5], []], pa.list_(pa.float32()))]
    rows = pa.table({f"c{number}": kinds[number % len(kinds)] for number in range(columns)})
    pq.write_table(rows, tmp_path / "a.parquet")
    source = FileSource("parquet", f"{tmp_path}/a.parquet")

    write_files(spark, source, spec, table)
    write_files(spark, source, spec, table, mode="upsert", on=["c0"])

    location = spec.connect().describe_table(DescribeTableRequest(id=[table])).location
    assert lance.dataset(location).to_table() == rows


@pytest.mark.long
@pytest.mark.parametrize(
    "how",
    [{"mode": "append"}, {"mode": "overwrite"}, {"mode": "upsert", "on": ["id"]}],
    ids=lambda how: how["mode"],
)
def test_wide_rows_are_appended_to_a_table_with_rows(
    spark: SparkSession, spec: NamespaceSpec, table: str, how: dict[str, Any]
) -> None:
    write_and_read(spark, spec, table, MANY)

    back = write_and_read(spark, spec, table, MANY, **how)

    assert back.count() == (10 if how["mode"] == "append" else 5)


@pytest.mark.long
def test_wide_rows_with_maps_are_sized_by_spark(spark: SparkSession, spec: NamespaceSpec, table: str) -> None:
    frame = wide_rows(spark, 1_000, MANY, maps=True)

    write_table(frame, spec, table)

    assert read_table(spark, spec, table).where("id = 999").collect() == frame.where("id = 999").collect()
