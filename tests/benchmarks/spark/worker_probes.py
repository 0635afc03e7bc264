"""Executor tasks for measurements: each pinned to a core, or reporting its peak memory."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

from airflow_provider_lancens.spark.write.files.file_writer import FileTask
from airflow_provider_lancens.spark.write.write_task import WriteTask

ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "LANCE_CPU_THREADS", "LANCE_IO_THREADS", "TOKIO_WORKER_THREADS"), "1"
)


@contextmanager
def fresh_workers(spark: SparkSession, name: str, **environment: str) -> Iterator[None]:
    """Use new Python workers with this environment; later ones have the session's own again."""
    own = dict(spark.sparkContext.environment)
    spark.sparkContext.environment.update(environment, LANCENS_WORKERS_OF=name)
    yield
    spark.sparkContext.environment.clear()
    spark.sparkContext.environment.update(own)


class PinnedTask(FileTask):
    """The work of one task on one core, with all present and future threads of the worker."""

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        core = sorted(os.sched_getaffinity(os.getppid()))[context.partitionId()] if context else 0
        for thread in Path("/proc/self/task").iterdir():
            os.sched_setaffinity(int(thread.name), {core})
        return FileTask.run(self, batches)


@dataclass(frozen=True)
class MeasuredTask(WriteTask):
    """Writes the worker's peak memory to a folder."""

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from WriteTask.run(self, batches)
        peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
        folder = Path(os.environ["LANCENS_WORKERS_OF"])
        (folder / f"{os.getpid()}.peak").write_text(peak[1] if peak else "")


def peak_megabytes(folder: Path) -> float:
    """The highest peak that tasks recorded."""
    return max(int(file.read_text()) for file in folder.glob("*.peak")) / 1024
