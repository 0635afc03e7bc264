"""Large values, references and ranges that are refused, before anything is written.

All reasons to refuse a value: tests/unit/spark/blobs.
"""

from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.blob import BlobType
from lance_namespace import DescribeTableRequest
from lance_namespace.errors import InvalidInputError, TableSchemaValidationError
from pyspark.sql import SparkSession

from airflow_provider_lancens.spark import NamespaceSpec, TableLayout
from airflow_provider_lancens.spark.compute.compute_column import compute_column
from tests.support.blob_tables import BLOBS, REFERENCES, clips
from tests.support.reads import read_changes, read_table
from tests.support.writes import write_table

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("s3://key:secret@bucket/x", "contains credentials"),
        ("ftp://host/x", "ftp"),
    ],
)
def test_an_invalid_uri_is_refused(
    spark: SparkSession, spec: NamespaceSpec, table: str, dataset: Any, value: str, message: str
) -> None:
    write_table(clips(spark, (0, b"x")), spec, table, options=BLOBS)

    with pytest.raises(InvalidInputError, match=message) as caught:
        write_table(clips(spark, (1, value)), spec, table)

    assert "key:secret" not in str(caught.value)
    assert dataset().version == 1


def test_an_invalid_reference_is_refused(spark: SparkSession, spec: NamespaceSpec, table: str) -> None:
    frame = spark.createDataFrame([(0, ("/x", 0, None))], REFERENCES)

    with pytest.raises(InvalidInputError, match="only one of position and size"):
        write_table(frame, spec, table, options=BLOBS)


@pytest.mark.parametrize("how", [{"schema_mode": "merge"}, {"mode": "overwrite", "schema_mode": "overwrite"}])
def test_a_table_of_an_older_format_cannot_get_blobs(
    spark: SparkSession, spec: NamespaceSpec, table: str, dataset: Any, how: Any
) -> None:
    older = TableLayout(data_storage_version="2.1")
    write_table(spark.createDataFrame([(0,)], "id long"), spec, table, options=older)

    with pytest.raises((InvalidInputError, TableSchemaValidationError), match=r"2\.2 or newer"):
        write_table(clips(spark, (1, b"x")), spec, table, options=BLOBS, **how)

    assert dataset().version == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"blob_columns": ["film"]}, "blob_columns: the rows have no column 'film'"),
        ({"blob_columns": ["id"]}, "blob_columns: column 'id' is int64; expected binary"),
        (
            {"blob_columns": ["video"], "data_storage_version": "2.0"},
            r"data_storage_version: expected 2\.2 or newer",
        ),
    ],
)
def test_invalid_options_are_refused(
    spark: SparkSession, spec: NamespaceSpec, table: str, options: Any, message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        write_table(clips(spark, (1, b"x")), spec, table, options=TableLayout(**options))


@pytest.mark.parametrize(
    ("blobs", "message"),
    [
        ({"film": "all"}, r"'film' isn't one of the blob columns to read: \['video'\]"),
        ({"video": "some"}, r"blobs\['video'\]: expected 'all'"),
        ({"video": (0, 0)}, r"blobs\['video'\]: expected 'all'"),
        ({"video": (-1, 5)}, r"blobs\['video'\]: expected 'all'"),
    ],
)
def test_invalid_reads_are_refused(
    spark: SparkSession, spec: NamespaceSpec, table: str, blobs: Any, message: str
) -> None:
    write_table(clips(spark, (1, b"x")), spec, table, options=BLOBS)

    with pytest.raises(InvalidInputError, match=message):
        read_table(spark, spec, table, blobs=blobs)


def test_an_update_of_some_columns_cannot_copy_blobs(
    spark: SparkSession, spec: NamespaceSpec, table: str
) -> None:
    frame = clips(spark, (1, b"x")).selectExpr("*", "'a' AS title")
    write_table(frame, spec, table, options=BLOBS)

    changed = frame.select("id", "title")

    with pytest.raises(InvalidInputError, match="blob column 'video' cannot be"):
        write_table(changed, spec, table, mode="upsert", on=["id"], update_columns=["title"])


def test_numbers_are_refused_for_a_blob_column(spark: SparkSession, spec: NamespaceSpec, table: str) -> None:
    write_table(clips(spark, (1, b"x")), spec, table, options=BLOBS)

    with pytest.raises(TableSchemaValidationError, match="video is int64"):
        write_table(spark.createDataFrame([(2, 3)], "id long, video long"), spec, table)


def test_a_blob_within_a_struct_is_refused_by_name_and_the_other_columns_are_used(
    spark: SparkSession, spec: NamespaceSpec, table: str, dataset: Any
) -> None:
    value = {"data": b"x", "uri": None, "position": None, "size": None}
    blobs = pa.ExtensionArray.from_storage(BlobType(), pa.array([value], BlobType().storage_type))
    inside = pa.StructArray.from_arrays([blobs], names=["video"])
    location = spec.connect().describe_table(DescribeTableRequest(id=[table])).location
    rows = pa.table({"id": [1], "title": ["a"], "clip": inside})
    lance.write_dataset(rows, location, data_storage_version="2.2")

    with pytest.raises(InvalidInputError, match=r"column clip\.video: Spark reads a blob only if"):
        read_table(spark, spec, table)
    with pytest.raises(InvalidInputError, match=r"column clip\.video: Spark reads a blob only if"):
        read_changes(spark, spec, table, after_version=None, version=1)
    with pytest.raises(InvalidInputError, match=r"columns: clip\.video is a blob within a struct"):
        compute_column(spark, spec, table, column="n", columns=["clip"], function=lambda batch: batch["id"])
    changed = spark.createDataFrame([(1, "b")], "id long, title string")
    with pytest.raises(InvalidInputError, match="blob column 'clip' cannot be"):
        write_table(changed, spec, table, mode="upsert", on=["id"], update_columns=["title"])
    assert read_table(spark, spec, table, columns=["id", "title"]).collect() == [(1, "a")]
    assert dataset().version == 1
