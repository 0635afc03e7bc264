"""A full or read-only disk: an error that says what to do, and each row exactly once."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from lance_namespace.errors import ErrorCode
from pyspark.sql import SparkSession

from airflow_provider_lancens.spark import FileSource, NamespaceSpec
from airflow_provider_lancens.spark.maintenance import CompactionOptions
from airflow_provider_lancens.spark.maintenance.compact import compact_table
from tests.conformance.codes import refused_with
from tests.servers.small_disk import SmallDisk, small_disk
from tests.support.reads import read_table
from tests.support.writes import write_files, write_table

WIDE = 2_000
"""Random bytes of a row: compression can't help."""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", megabytes=6) as mounted:
        yield mounted


@pytest.fixture
def spec(disk: SmallDisk) -> NamespaceSpec:
    return NamespaceSpec("dir", {"root": str(disk.path)})


def wide_rows(
    spark: SparkSession, rows: int, partitions: int = 2, before: Callable[[], object] | None = None
) -> Any:
    """Rows of two kilobytes each; `before` runs on the executor ahead of each partition."""

    def widen(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if before is not None:
            before()
        for batch in batches:
            noise = pa.array([os.urandom(WIDE) for _ in range(batch.num_rows)])
            yield pa.record_batch([batch.column(0), noise], names=["id", "noise"])

    return spark.range(0, rows, 1, partitions).mapInArrow(widen, "id long, noise binary")


def check_rows(spark: SparkSession, spec: NamespaceSpec, table: str, rows: int) -> None:
    found = read_table(spark, spec, table, columns=["id"]).collect()
    assert sorted(row["id"] for row in found) == list(range(rows))


def test_an_ingestion_on_a_full_disk_commits_nothing_and_its_retry_commits_all(
    spark: SparkSession, spec: NamespaceSpec, table: str, disk: SmallDisk
) -> None:
    write_table(wide_rows(spark, 100), spec, table, mode="create", key="first")
    with refused_with(ErrorCode.SERVICE_UNAVAILABLE, "on an executor", "is full", "run it again"):
        write_table(wide_rows(spark, 4_000), spec, table, mode="overwrite", key="second")
    check_rows(spark, spec, table, 100)

    subprocess.run(["mount", "-o", "remount,size=64m", str(disk.path)], check=True)
    result = write_table(wide_rows(spark, 4_000), spec, table, mode="overwrite", key="second")
    assert (result.version, result.is_done) == (2, True)
    check_rows(spark, spec, table, 4_000)


@pytest.mark.long
def test_an_ingestion_of_files_on_a_full_disk_commits_nothing_and_its_retry_commits_all(
    spark: SparkSession, spec: NamespaceSpec, table: str, disk: SmallDisk, tmp_path: Path
) -> None:
    noise = pa.array([os.urandom(WIDE) for _ in range(4_000)])
    pq.write_table(pa.table({"id": range(4_000), "noise": noise}), tmp_path / "rows.parquet")
    source = FileSource("parquet", str(tmp_path / "rows.parquet"))
    with refused_with(ErrorCode.SERVICE_UNAVAILABLE, "on an executor", "is full"):
        write_files(spark, source, spec, table, key="files")

    subprocess.run(["mount", "-o", "remount,size=64m", str(disk.path)], check=True)
    assert write_files(spark, source, spec, table, key="files").written == 4_000
    check_rows(spark, spec, table, 4_000)


def test_a_disk_that_becomes_read_only_under_the_executors_is_reported(
    spark: SparkSession, spec: NamespaceSpec, table: str, disk: SmallDisk
) -> None:
    write_table(wide_rows(spark, 10), spec, table, key="first")
    remount = ["mount", "-o", "remount,ro", str(disk.path)]
    # One partition: a second one may outlive the failed job, and remount a disk that is writable again.
    turned = wide_rows(spark, 20, partitions=1, before=lambda: subprocess.run(remount, check=True))
    with refused_with(ErrorCode.PERMISSION_DENIED, "on an executor", "is read-only"):
        write_table(turned, spec, table, mode="overwrite", key="second")
    check_rows(spark, spec, table, 10)

    disk.mount_writable()
    write_table(wide_rows(spark, 20), spec, table, mode="overwrite", key="second")
    check_rows(spark, spec, table, 20)


@pytest.mark.parametrize("fault", ["full", pytest.param("read-only", marks=pytest.mark.long)])
def test_a_write_that_cannot_start_says_why(
    spark: SparkSession, spec: NamespaceSpec, table: str, disk: SmallDisk, fault: str
) -> None:
    expected = {
        "full": (ErrorCode.SERVICE_UNAVAILABLE, "is full"),
        "read-only": (ErrorCode.PERMISSION_DENIED, "is read-only"),
    }
    disk.fill() if fault == "full" else disk.mount_read_only()
    with refused_with(*expected[fault]):
        write_table(wide_rows(spark, 10), spec, table, key="first")
    disk.make_room() if fault == "full" else disk.mount_writable()
    write_table(wide_rows(spark, 10), spec, table, key="first")
    check_rows(spark, spec, table, 10)


def test_a_compaction_on_a_full_disk_leaves_the_rows_unchanged(
    spark: SparkSession, spec: NamespaceSpec, table: str
) -> None:
    write_table(wide_rows(spark, 2_000), spec, table, key="first")
    with refused_with(ErrorCode.SERVICE_UNAVAILABLE, "is full"):
        compact_table(spark, spec, table, options=CompactionOptions(target_rows_per_fragment=10_000))
    check_rows(spark, spec, table, 2_000)
