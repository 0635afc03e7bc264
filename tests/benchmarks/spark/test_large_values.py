"""The memory of a worker that writes and reads large values, and what it costs to refer to files instead."""

import time
from pathlib import Path

import pytest
from lance_namespace import DeclareTableRequest
from pyspark.sql import SparkSession

from airflow_provider_lancens.spark import FileSource, NamespaceSpec, TableLayout
from airflow_provider_lancens.spark.write import write_rows
from tests.benchmarks.spark.worker_probes import MeasuredTask, fresh_workers, peak_megabytes
from tests.support.reads import read_table
from tests.support.writes import write_files, write_table

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

BLOBS = TableLayout(blob_columns=["blob"])
MOST_MEGABYTES = 700


def test_workers_hold_few_large_values(
    spark: SparkSession, blobs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = _declared(tmp_path)
    monkeypatch.setattr(write_rows, "WriteTask", MeasuredTask)

    with fresh_workers(spark, str(tmp_path)):
        written = write_files(spark, FileSource("parquet", str(blobs)), spec, "t", options=BLOBS)
        started = time.monotonic()
        frame = read_table(spark, spec, "t", blobs={"blob": "all"})
        (total,) = frame.selectExpr("sum(length(blob))").first()
        seconds = time.monotonic() - started

    peak = peak_megabytes(tmp_path)
    print(  # noqa: T201 for the one who measures
        f"\n{total / 1e6:,.0f} MB of blobs: written in {written.seconds:.1f} s, a worker's peak "
        f"{peak:.0f} MB; read in {seconds:.1f} s"
    )
    assert total == written.written * 1024 * 1024
    assert peak <= MOST_MEGABYTES


def test_references_cost_what_their_names_cost(spark: SparkSession, tmp_path: Path) -> None:
    spec = _declared(tmp_path)
    (tmp_path / "large.bin").write_bytes(bytes(64 * 1024 * 1024))
    uri = f"named_struct('uri', 'file://{tmp_path}/large.bin', 'position', id, 'size', 65536L)"

    written = write_table(spark.range(1_000_000).selectExpr("id", f"{uri} AS blob"), spec, "t", options=BLOBS)
    started = time.monotonic()
    frame = read_table(spark, spec, "t", blobs={"blob": (0, 16)}, filter="id < 10000")
    (count, total) = frame.selectExpr("count(*)", "sum(length(blob))").first()

    print(  # noqa: T201 for the one who measures
        f"\n1,000,000 references written in {written.seconds:.1f} s as {written.bytes / 1e6:.1f} MB; 16 "
        f"bytes of {count:,} read in {time.monotonic() - started:.1f} s"
    )
    assert (count, total) == (10_000, 160_000)


def _declared(folder: Path) -> NamespaceSpec:
    spec = NamespaceSpec("dir", {"root": str(folder)})
    spec.connect().declare_table(DeclareTableRequest(id=["t"]))
    return spec
