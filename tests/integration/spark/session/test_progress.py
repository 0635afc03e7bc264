"""Progress of Spark jobs in the log."""

import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_provider_lancens.spark.session import ProgressLog, Stage, progress_logged


def test_stages_tasks_rows_and_rate_are_logged(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    go_on = tmp_path / "go-on"

    def waiting(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            while not go_on.exists() and batch.column(0)[0].as_py():  # the first partition finishes at once
                time.sleep(0.05)
            yield batch

    class Told(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "1 of 2 tasks" in record.getMessage():
                go_on.touch()

    log = logging.getLogger("airflow_provider_lancens.spark.session")
    handler = Told()
    log.addHandler(handler)
    try:
        with caplog.at_level(logging.INFO), progress_logged(spark, seconds=0.1):
            assert spark.range(0, 1000, 1, 2).mapInArrow(waiting, "id long").count() == 1000
    finally:
        log.removeHandler(handler)

    assert "1 of 2 tasks, " in caplog.text


def test_unchanged_progress_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    log = ProgressLog(seconds=0)
    with caplog.at_level(logging.INFO):
        for done in (1, 1, 2):
            log.report([Stage(7, 2, done, 1_000_000, 5_000_000)])
        log.report([])

    lines = [record.getMessage() for record in caplog.records]
    assert [line.split(" (")[0] for line in lines] == [
        "stage 7: 1 of 2 tasks, 1,000,000 rows, 5.0 MB read",
        "stage 7: 2 of 2 tasks, 1,000,000 rows, 5.0 MB read",
    ]


def test_a_stage_of_what_spark_does_not_read_itself_has_no_size() -> None:
    assert str(Stage(7, 1, 0, None, 0)) == "stage 7: 0 of 1 task"
    assert str(Stage(7, 2, 1, 0, 300)) == "stage 7: 1 of 2 tasks, 300 bytes read"


def test_progress_lines_are_rate_limited(caplog: pytest.LogCaptureFixture) -> None:
    log = ProgressLog(seconds=3600)
    with caplog.at_level(logging.INFO):
        log.report([Stage(7, 2, 1, None, 0)])

    assert not caplog.records
