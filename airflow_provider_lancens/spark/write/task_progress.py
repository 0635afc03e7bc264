"""Progress of the tasks of a write while they run, reported through the table's storage.

Spark counts what a Python task reads or writes by itself only once it ends: an executor's heartbeat has the
counts of its JVM, not of the Python worker. The storage is what driver and executors share wherever they run,
on any cluster and with Spark Connect. A task that takes long therefore keeps a small file beside the lease of
its write, whose name has its counts; the driver lists these files and logs their sum.
"""

from __future__ import annotations

import logging
import re
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.formatting import format_count, format_size
from airflow_provider_lancens.namespace.storage.write_leases import HEARTBEAT, LEASES
from airflow_provider_lancens.spark.commit.write_lease import WriteLease
from airflow_provider_lancens.spark.write.batch_sizing import bytes_of

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger(__name__)

SECONDS = 10.0
"""Between two reports of a task, and between two lines of the log."""
_COUNTS = re.compile(rf"\.[0-9a-f]{{32}}-(\d+)-(\d+){re.escape(HEARTBEAT)}")


class RunningTasks(NamedTuple):
    """What the running tasks have written so far."""

    tasks: int
    rows: int
    bytes: int

    def __str__(self) -> str:
        tasks = "1 running task has" if self.tasks == 1 else f"{self.tasks} running tasks have"
        return f"{tasks} written {format_count(self.rows, 'row')}, {format_size(self.bytes)} in memory"


@dataclass(frozen=True, slots=True)
class WriteProgress:
    """The progress of one write. Picklable."""

    lease: WriteLease
    seconds: float = field(default_factory=lambda: SECONDS)

    @contextmanager
    def reporting(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Iterator[pa.RecordBatch]]:
        """Return the batches of a task, and report in the block how many of them were taken; on executors."""
        task = _Task(self.lease)
        with _every(self.seconds, task.report, task.end):
            yield task.counted(batches)

    @contextmanager
    def logged(self) -> Iterator[None]:
        """Log what the running tasks have written, in the block; on the driver."""
        driver = _Driver(self.lease)
        with _every(self.seconds, driver.log, driver.end):
            yield


class _Task:
    def __init__(self, lease: WriteLease) -> None:
        self._files = lease.files
        self._start = f"{lease.path}.{uuid.uuid4().hex}"
        self._path = ""
        self._rows = self._bytes = 0

    def counted(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch
            self._rows, self._bytes = self._rows + batch.num_rows, self._bytes + bytes_of(batch)

    def report(self) -> None:
        path = f"{self._start}-{self._rows}-{self._bytes}{HEARTBEAT}"
        if path == self._path:
            return
        before, self._path = self._path, path
        self._files.put(path, b"")
        if before:
            self._files.remove(before)

    def end(self) -> None:
        if self._path:
            self._files.remove(self._path)


class _Driver:
    def __init__(self, lease: WriteLease) -> None:
        self._lease = lease
        self._logged = RunningTasks(0, 0, 0)

    def log(self) -> None:
        found = [counts for _, counts in self._reports()]
        running = RunningTasks(len(found), sum(rows for rows, _ in found), sum(size for _, size in found))
        if found and running != self._logged:
            self._logged = running
            _log.info("%s", running)

    def end(self) -> None:
        if self._logged.tasks:  # of tasks that were killed
            self._lease.leftovers.extend(path for path, _ in self._reports())

    def _reports(self) -> Iterator[tuple[str, tuple[int, int]]]:
        for file in self._lease.files.below(LEASES):
            if file.path.startswith(self._lease.path):
                counts = _COUNTS.fullmatch(file.path.removeprefix(self._lease.path))
                if counts is not None:
                    yield file.path, (int(counts[1]), int(counts[2]))


@contextmanager
def _every(seconds: float, call: Callable[[], None], end: Callable[[], None]) -> Iterator[None]:
    """Make calls at intervals, and one at the end, in a thread; the write goes on if they fail."""
    over = threading.Event()

    def attempt(call: Callable[[], None]) -> None:
        try:
            call()
        except Exception as error:
            # Named only now: `lance_namespace` takes a worker a second to import.
            if not isinstance(error, spec_errors.LanceNamespaceError):
                raise

    def repeat() -> None:
        while not over.wait(seconds):
            attempt(call)
        attempt(end)

    thread = threading.Thread(target=repeat, name="lance-write-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
