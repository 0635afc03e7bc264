"""Marks of writes that are running: a clean-up leaves alone what was written since the oldest of them began.

A mark is a small file beside the data. It is refreshed as long as its driver lives, and all times are
those that the storage gave its files: clocks of drivers don't count.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from lance_namespace.errors import ConcurrentModificationError, LanceNamespaceError, ServiceUnavailableError

from airflow_provider_lancens.namespace.locations import is_local, normalize
from airflow_provider_lancens.namespace.storage import RECORDED
from airflow_provider_lancens.namespace.table_files import StoredFile, TableFiles
from airflow_provider_lancens.spark.dataset import DatasetRef

_log = logging.getLogger(__name__)

MARKS = f"{RECORDED}/writes"
REFRESH = 60.0
"""Seconds between two signs of life of a running write."""


@dataclass(frozen=True, slots=True)
class Running:
    """A write that is under way. It pickles, so that others than its driver can give signs of life."""

    files: TableFiles
    path: str
    began: datetime
    """By the storage's clock."""

    def check(self) -> None:
        """Return where no clean-up took this write for dead; asked right before a commit.

        Raises:
            ConcurrentModificationError: (14) one did, and its files may be gone.
        """
        if self.files.look(self.path) is None:
            raise ConcurrentModificationError(
                f"{self.files.location}: a clean-up took this write for dead, which gave no sign of life for "
                "long, and may have removed its files; nothing was committed, run it again"
            )

    def refresh(self) -> None:
        """Give a sign of life, unless the mark was taken away."""
        if self.files.look(self.path) is not None:
            self.files.put(self.path, self.began.isoformat().encode())

    @contextlib.contextmanager
    def kept_alive(self) -> Iterator[None]:
        """Give signs of life from a thread, for the duration of the block."""
        done = threading.Event()
        thread = threading.Thread(target=_keep_alive, args=(self, done), name="lance-write-mark", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def end(self) -> None:
        """Take the mark away, which may be gone."""
        try:
            self.files.remove(self.path)
        except LanceNamespaceError as error:
            _log.warning("The mark of a write that has ended stays for a clean-up: %s", error)


@dataclass(frozen=True, slots=True)
class Mark:
    """A write as a clean-up finds it."""

    path: str
    began: datetime
    refreshed: datetime


@contextlib.contextmanager
def running(dataset: DatasetRef) -> Iterator[Running]:
    """Mark a write for the duration of the block, and give signs of life from a thread.

    Args:
        dataset: what is written to; it need not exist yet.
    """
    write = begin(dataset)
    try:
        with write.kept_alive():
            yield write
    finally:
        write.end()


def begin(dataset: DatasetRef) -> Running:
    """Mark a write that begins now; it has to be ended, and kept alive meanwhile."""
    if is_local(dataset.location):
        Path(normalize(dataset.location)).mkdir(parents=True, exist_ok=True)
    files = TableFiles(dataset.location, dataset.storage_options)
    path = f"{MARKS}/{uuid.uuid4()}"
    files.put(path, b"")
    placed = files.look(path)
    if placed is None:
        raise ServiceUnavailableError(f"{files.location}: {path} was written and is not there; run it again")
    write = Running(files, path, placed.modified)
    write.refresh()
    return write


def marks_of(files: TableFiles) -> list[Mark]:
    """The marks that lie beside a data set, of running writes and of dead ones."""
    return [_mark(files, found) for found in files.below(MARKS)]


def _keep_alive(write: Running, done: threading.Event) -> None:
    while not done.wait(REFRESH):
        try:
            write.refresh()
        except LanceNamespaceError as error:
            _log.warning("The mark of a running write was not refreshed: %s", error)


def _mark(files: TableFiles, found: StoredFile) -> Mark:
    text = (files.read(found.path) or b"").decode()
    # One that has no words yet began just now.
    began = datetime.fromisoformat(text).astimezone(UTC) if text else found.modified
    return Mark(found.path, began, found.modified)
