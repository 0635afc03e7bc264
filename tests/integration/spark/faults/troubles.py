"""A write of which one task comes to grief when its files are written and nobody was told of them."""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from airflow_provider_lancens.spark.rows import Rows, Written
from airflow_provider_lancens.spark.tasks import WriteTask


class TroubledTask:
    """The first attempt to come to its end stays there, or fails; the others do as ever.

    No data class: pickled by value, PySpark 3.5 loses the fields of one.
    """

    def __init__(self, task: WriteTask, marker: str, fails: bool) -> None:
        self.task, self.marker, self.fails = task, marker, fails
        self.dataset = task.dataset

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        answers = list(self.task.run(batches))
        if self._is_first():
            parent = os.getppid()
            while not self.fails and os.getppid() == parent:
                time.sleep(0.05)
            raise RuntimeError("this attempt fails")
        yield from answers

    def _is_first(self) -> bool:
        """Say which JVM this is, once; Spark's daemon stands between us and that."""
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
    """Rows that are written by such tasks."""

    rows: Rows
    marker: Path
    fails: bool

    def schema(self, *arguments: Any) -> pa.Schema:
        return self.rows.schema(*arguments)

    def write(self, task: WriteTask) -> Written:
        troubled: Any = TroubledTask(task, str(self.marker), self.fails)
        return self.rows.write(troubled)
