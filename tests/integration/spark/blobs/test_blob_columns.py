"""Large values: written as bytes and by reference, read whole and as ranges, through maintenance."""

import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from airflow_provider_lancens.spark import FileSource, NamespaceSpec, TableLayout
from airflow_provider_lancens.spark.compute.compute_column import compute_column
from airflow_provider_lancens.spark.maintenance.clean_up import clean_up_versions
from airflow_provider_lancens.spark.maintenance.compact import compact_table
from airflow_provider_lancens.spark.maintenance.orphans import remove_orphans
from tests.integration.spark.row_ids import BOTH_KINDS
from tests.support.blob_tables import BLOBS, REFERENCES, Read, clips
from tests.support.reads import read_table
from tests.support.writes import write_files, write_table

pytestmark = pytest.mark.thorough

LONG = 5_000_000
"""Bytes of a value that Lance stores as a file of its own."""


def test_bytes_of_any_length_are_read_back(
    spark: SparkSession, spec: NamespaceSpec, table: str, read: Read, dataset: Any
) -> None:
    values = {0: b"", 1: b"short", 2: b"m" * 100_000, 3: os.urandom(LONG), 4: None}

    write_table(clips(spark, *values.items()).coalesce(1), spec, table, options=BLOBS)

    assert read() == values
    assert dataset().data_storage_version == "2.2"
    assert list(Path(dataset().uri).glob("data/*/*.blob"))


def test_a_range_of_each_value_is_read_to_its_end_at_most(
    spark: SparkSession, spec: NamespaceSpec, table: str, read: Read, files: Path
) -> None:
    write_table(
        clips(spark, (0, b""), (1, b"0123456789"), (2, b"x" * 4 + b"y" * LONG)), spec, table, options=BLOBS
    )
    write_table(clips(spark, (3, str(files / "b.bin")), (4, None)), spec, table)

    assert read((4, 3)) == {0: b"", 1: b"456", 2: b"yyy", 3: b"\4\5\6", 4: None}
    assert read((8, 1000))[1] == b"89"
    assert read((5000, 1))[3] == b""


def test_files_are_referred_to_without_being_read(
    spark: SparkSession, spec: NamespaceSpec, table: str, read: Read, files: Path, dataset: Any
) -> None:
    plain, missing = str(files / "a.bin"), f"file:{files}/missing.bin"

    write_table(clips(spark, (0, plain), (1, missing), (2, None)), spec, table, options=BLOBS)

    assert read(None) == {
        0: (f"file://{plain}", None, None),
        1: (f"file://{files}/missing.bin", None, None),
        2: None,
    }
    assert read(filter="id = 0") == {0: b"a" * 100}
    assert not list(Path(dataset().uri).glob("data/*/*.blob"))
    with pytest.raises(PythonException, match="column video: a row refers to a file that does not exist"):
        read()


def test_a_reference_is_a_range_of_a_file_and_can_be_copied(
    spark: SparkSession, spec: NamespaceSpec, table: str, read: Read, files: Path
) -> None:
    rows = [(0, (str(files / "b.bin"), 10, 5)), (1, (str(files / "a.bin"), None, None)), (2, None)]
    write_table(spark.createDataFrame(rows, REFERENCES), spec, table, options=BLOBS)

    copied = read_table(spark, spec, table).selectExpr("id + 10 AS id", "video")
    write_table(copied, spec, table)

    values = read()
    assert values[0] == values[10] == bytes(range(10, 15))
    assert values[1] == values[11] == b"a" * 100
    assert values[2] is values[12] is None
    assert read((1, 2))[10] == bytes([11, 12])


def test_names_with_spaces_and_percent_signs_are_found(
    spark: SparkSession, spec: NamespaceSpec, table: str, read: Read, files: Path
) -> None:
    odd = files / "a b%20c#ü?.bin"
    odd.write_bytes(b"odd")

    write_table(clips(spark, (0, str(odd))), spec, table, options=BLOBS)
    scanned = (
        spark.read.format("binaryFile")
        .load(str(files))
        .selectExpr("1L AS id", "_metadata.file_path AS video")
    )
    write_table(scanned.where("video LIKE '%odd%' OR video LIKE '%20b%'"), spec, table)

    assert read() == {0: b"odd", 1: b"odd"}


def test_files_with_uris_are_ingested(
    spark: SparkSession, spec: NamespaceSpec, table: str, read: Read, files: Path, tmp_path: Path
) -> None:
    rows = pa.table({"id": [0, 1], "video": [str(files / "a.bin"), None]})
    pq.write_table(rows, tmp_path / "rows.parquet")

    source = FileSource("parquet", [str(tmp_path / "rows.parquet")])
    write_files(spark, source, spec, table, options=BLOBS)

    assert read() == {0: b"a" * 100, 1: None}


@pytest.mark.parametrize("stable", BOTH_KINDS)
def test_values_survive_every_change_of_the_table(
    spark: SparkSession, spec: NamespaceSpec, table: str, read: Read, files: Path, dataset: Any, stable: bool
) -> None:
    options = TableLayout(blob_columns=["video"], stable_row_ids=stable)
    big = os.urandom(LONG)
    write_table(clips(spark, (0, b"s"), (1, big), (2, b"m" * 100_000)), spec, table, options=options)
    write_table(clips(spark, (3, str(files / "a.bin")), (4, str(files / "b.bin"))), spec, table)
    write_table(clips(spark, (2, b"new"), (5, big)), spec, table, mode="upsert", on=["id"])
    write_table(clips(spark, (4, str(files / "a.bin"))), spec, table, mode="upsert", on=["id"])
    write_table(clips(spark, (0, b"replaced")), spec, table, mode="overwrite", where="id = 0")
    expected = {0: b"replaced", 1: big, 2: b"new", 3: b"a" * 100, 4: b"a" * 100, 5: big}
    assert read() == expected

    compact_table(spark, spec, table)
    assert read() == expected
    clean_up_versions(spec, table, older_than=timedelta(0), keep_versions=1)
    age(Path(dataset().uri))
    assert remove_orphans(spec, table, older_than=timedelta(hours=1)).paths == ()

    assert read() == expected
    assert sorted(file.name for file in files.iterdir()) == ["a.bin", "b.bin"]


def test_files_of_values_of_a_failed_write_are_removed_as_orphans(
    spark: SparkSession, spec: NamespaceSpec, table: str, read: Read, dataset: Any
) -> None:
    write_table(clips(spark, (0, b"x" * LONG)), spec, table, options=BLOBS)
    frame = pa.table({"id": [1], "video": lance.blob.blob_array([b"y" * LONG])}, schema=dataset().schema)
    lance.fragment.write_fragments(frame, dataset(), data_storage_version="2.2")
    age(Path(dataset().uri))

    removed = remove_orphans(spec, table, older_than=timedelta(hours=1))

    assert [Path(path).suffix for path in removed.paths if path.startswith("data")] == [".lance", ".blob"]
    assert removed.bytes > LONG
    assert read() == {0: b"x" * LONG}


def age(location: Path) -> None:
    """Make all files of a dataset two hours older."""
    then = time.time() - 7200
    for file in location.rglob("*"):
        if file.is_file():
            os.utime(file, (then, then))


def test_a_column_is_computed_from_the_bytes(
    spark: SparkSession, spec: NamespaceSpec, table: str, files: Path
) -> None:
    write_table(clips(spark, (0, b"abc"), (1, b"z" * LONG)), spec, table, options=BLOBS)
    write_table(clips(spark, (2, str(files / "a.bin")), (3, None)), spec, table)

    def lengths(batch: pa.RecordBatch) -> pa.Array:
        return pa.array([None if v is None else len(v) for v in batch.column(0).to_pylist()], pa.int64())

    compute_column(spark, spec, table, "length", lengths, columns=["video"])

    rows = read_table(spark, spec, table, columns=["id", "length"]).collect()
    assert {row["id"]: row["length"] for row in rows} == {0: 3, 1: LONG, 2: 100, 3: None}


def test_a_merge_adds_a_blob_column(spark: SparkSession, spec: NamespaceSpec, table: str, read: Read) -> None:
    format_2_2 = TableLayout(data_storage_version="2.2")
    write_table(spark.createDataFrame([(0,)], "id long"), spec, table, options=format_2_2)

    write_table(clips(spark, (1, b"x")), spec, table, schema_mode="merge", options=BLOBS)

    assert read() == {0: None, 1: b"x"}
