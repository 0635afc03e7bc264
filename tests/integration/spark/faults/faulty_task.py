"""A write in which one task fails after its files are written and before they are reported."""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from airflow_provider_lancens.spark.write.row_sources import Rows, Written
from airflow_provider_lancens.spark.write.write_task import WriteTask


class TroubledTask:
    """The first attempt that finishes hangs or fails; the others succeed.

    Not a data class: PySpark 3.5 loses the fields of one that is pickled by value.
    """

    def __init__(self, task: WriteTask, marker: str, fails: bool) -> None:
        self.task, self.marker, self.fails = task, marker, fails
        self.dataset, self.schema, self.fitted = task.dataset, task.schema, task.fitted

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from self._troubled(self.task.run(batches))

    def write(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from self._troubled(self.task.write(batches))

    @property
    def targets(self) -> dict[str, pa.Field]:
        return self.task.targets

    def _troubled(self, results: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        answers = list(results)
        if self._is_first():
            parent = os.getppid()
            while not self.fails and os.getppid() == parent:
                time.sleep(0.05)
            raise RuntimeError("this attempt fails")
        yield from answers

    def _is_first(self) -> bool:
        """Record the id of this JVM, once; Spark's daemon is the parent of this process."""
        status = Path(f"/proc/{os.getppid()}/status").read_text()
        [jvm] = (line.split()[1] for line in status.splitlines() if line.startswith("PPid:"))
        unfinished = Path(f"{self.marker}.{os.getpid()}")
        unfinished.write_text(jvm)
        try:
            os.link(unfinished, self.marker)
        except FileExistsError:
            return False
        return True


@dataclass
class TroubledRows:
    """Rows written by such tasks."""

    rows: Rows
    marker: Path
    fails: bool

    def schema(self, *arguments: Any) -> pa.Schema:
        return self.rows.schema(*arguments)

    def write(self, task: WriteTask) -> Written:
        troubled: Any = TroubledTask(task, str(self.marker), self.fails)
        return self.rows.write(troubled)
