"""Writes with faults on a cluster or a Spark Connect server; run by `test_lost_executors.py`.

In a separate process, which can have only one Spark session. Each way to write has its own table, and makes
the write with the fault, then the same with the same key, then another one.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from airflow_provider_lancens.spark import FileSource, NamespaceSpec
from airflow_provider_lancens.spark.options import WriteIdentity, WriteRequest
from airflow_provider_lancens.spark.session import spark_session
from airflow_provider_lancens.spark.table.resolved_table import resolved_table
from airflow_provider_lancens.spark.write.files.file_writer import FileRows
from airflow_provider_lancens.spark.write.row_sources import FrameRows, Rows
from airflow_provider_lancens.spark.write.write_context import WriteContext
from airflow_provider_lancens.spark.write.write_rows import write_rows
from tests.integration.spark.faults import faulty_task

SECONDS = 120


def kill_executor(spark: SparkSession, jvm: int) -> None:
    os.kill(jvm, signal.SIGKILL)


def interrupt(spark: SparkSession, jvm: int) -> None:
    spark.interruptAll()


TROUBLES: dict[str, Callable[[SparkSession, int], None]] = {
    "executor-killed": kill_executor,
    "operation-interrupted": interrupt,
}
"""What is done to a task that waits for it; of another trouble, it fails by itself."""
WAYS: dict[str, Callable[[SparkSession, str], Rows]] = {
    "frame": lambda spark, files: FrameRows(spark.range(0, 100, 1, 4)),
    "files": lambda spark, files: FileRows(spark, FileSource("parquet", [files], tasks=4)),
}


def strike(trouble: str, spark: SparkSession, marker: Path) -> None:
    deadline = time.monotonic() + SECONDS
    while not marker.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    TROUBLES[trouble](spark, int(marker.read_text()))


def write(rows: Rows, spec: NamespaceSpec, table: str, key: str) -> dict[str, Any] | None:
    """Return the result; None if Spark failed."""
    try:
        request = WriteRequest(identity=WriteIdentity(key, execution_id="1"))
        with resolved_table(spec, table) as target:
            return write_rows(rows, WriteContext.begin(target, request)).as_dict()
    except PySparkException:
        return None


def main() -> None:
    job = json.loads(sys.argv[1])
    trouble, spec = job["trouble"], NamespaceSpec(job["impl"], job["properties"])
    cloudpickle.register_pickle_by_value(faulty_task)  # executors can't import tests
    with spark_session("troubled", job["conf"]) as spark, ThreadPoolExecutor(1) as other:
        for way, table in job["tables"].items():
            rows, marker = WAYS[way](spark, job["files"]), Path(job["folder"], f"{way}.marker")
            if trouble in TROUBLES:
                other.submit(strike, trouble, spark, marker)
            troubled = faulty_task.TroubledRows(rows, marker, fails=trouble not in TROUBLES)
            following = FrameRows(spark.range(100, 110))
            answers = [
                write(troubled, spec, table, "january"),
                write(rows, spec, table, "january"),
                write(following, spec, table, "february"),
            ]
            sys.stdout.write(json.dumps(answers) + "\n")


if __name__ == "__main__":
    main()
