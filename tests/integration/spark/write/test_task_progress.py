"""Progress in the log while the only task of a write runs."""

import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from airflow_provider_lancens.namespace.storage.write_leases import LEASES
from airflow_provider_lancens.spark import FileSource, NamespaceSpec
from airflow_provider_lancens.spark.write import task_progress
from tests.servers.s3_credentials import TemporaryCredentials
from tests.servers.s3_double import S3Double
from tests.servers.s3_requests import GET, PUT, Request
from tests.servers.vending_namespace import vending
from tests.support.writes import write_files

SECONDS = 60
ROWS = pa.table({"n": range(1000)})


class Awaited(logging.Handler):
    """Sets an event when a text is logged."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text, self.event = text, threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        if self._text in record.getMessage():
            self.event.set()


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Set once a task is known to have written its first file, in reports that come quickly."""
    monkeypatch.setattr(task_progress, "SECONDS", 0.2)
    handler = Awaited("1 running task has written 1,000 rows, ")
    log = logging.getLogger(task_progress.__name__)
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    yield handler.event
    log.removeHandler(handler)
    log.setLevel(logging.NOTSET)


def test_rows_of_a_task_that_runs_are_logged(
    spark: SparkSession, tmp_path: Path, logged: threading.Event
) -> None:
    with S3Double() as s3:
        for name in ("1.parquet", "2.parquet"):
            pq.write_table(ROWS, tmp_path / name)
        s3.bucket.adopt("in", tmp_path)
        s3.credentials = TemporaryCredentials(lifetime=3600)
        begun = threading.Event()

        def gate(request: Request) -> None:
            if request.kind == PUT and f"/{LEASES}/" in request.key:
                begun.set()
            if begun.is_set() and request.kind == GET and request.key == "in/2.parquet":
                assert logged.wait(SECONDS)

        s3.gate = gate
        written = write_files(spark, FileSource("parquet", "s3://lake/in/", tasks=1), vending(s3), "t")

        assert (written.written, written.version) == (2000, 1)
        assert not [key for key in s3.bucket.objects if f"/{LEASES}/" in key]


def test_rows_of_a_task_are_logged_on_local_files(
    spark: SparkSession, spec: NamespaceSpec, table: str, tmp_path: Path, logged: threading.Event
) -> None:
    with S3Double() as s3:
        for name in ("1.parquet", "2.parquet"):
            pq.write_table(ROWS, tmp_path / name)
        s3.bucket.adopt("in", tmp_path)

        def gate(request: Request) -> None:
            if next((tmp_path / "orders.lance" / LEASES).glob("*"), None) and request.key == "in/2.parquet":
                assert logged.wait(SECONDS)

        s3.gate = gate
        files = FileSource("parquet", "s3://lake/in/", tasks=1, storage_options=s3.storage)
        written = write_files(spark, files, spec, table)

    assert (written.written, written.version) == (2000, 1)
    assert not (tmp_path / "orders.lance" / LEASES).exists()
    assert lance.dataset(str(tmp_path / "orders.lance")).count_rows() == 2000
