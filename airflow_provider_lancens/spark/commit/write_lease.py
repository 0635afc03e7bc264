"""Leases of running writes, by which their files are kept until they are committed.

The removal of orphans keeps all files written since the oldest of these writes began; a clean-up of versions,
which removes unreferenced files by their age, is refused while a write is almost as old as such files.

A lease is one or two small files beside the data. The first is written once, when the write begins; the
second, the heartbeat, once a minute for as long as its driver runs. A clean-up that presumes a write dead
removes the first, and nothing recreates it: a driver that was suspended while it wrote its heartbeat
recreates only the second. All times are modification times by the storage's clock; drivers' clocks aren't
used.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Self

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.storage.object_store import RECORDED
from airflow_provider_lancens.namespace.storage.table_files import TableFiles
from airflow_provider_lancens.namespace.storage.write_leases import HEARTBEAT, LEASES, REFRESH, check_open
from airflow_provider_lancens.spark.table.dataset_ref import DatasetRef

_log = logging.getLogger(__name__)

REVOKED = f"{RECORDED}/revoked"
"""Records of leases that were revoked, see `lease_revocation`."""


@dataclass(frozen=True, slots=True)
class WriteLease:
    """The lease of a running write. Picklable, so that processes other than its driver can refresh it."""

    files: TableFiles
    path: str
    """Path of the lease's first file."""
    leftovers: list[str] = field(default_factory=list, compare=False)
    """Paths of files that the holder's commit leaves, to be removed with the lease."""
    unanswered: list[str] = field(default_factory=list, compare=False)
    """Requests to create a version that got no answer, and may still take effect."""

    def began(self) -> datetime:
        """Return the start of the write, by the storage's clock.

        Raises:
            ConcurrentModificationError: (14) a clean-up revoked the lease.
        """
        held = self.files.stat(self.path)
        if held is None:
            raise self._revoked()
        return held.modified

    def check(self, *, by_storage: bool = False) -> None:
        """Check that the lease is held; called right before a version is created whose number is determined.

        Args:
            by_storage: whether the storage decides which writer creates the version.

        Raises:
            ConcurrentModificationError: (14) a clean-up revoked it, and the write's files may be gone.
            StaleTableError: (14) `by_storage`, and the metastore is to decide, see `check_open`.
        """
        found = {file.path for file in self.files.below(LEASES)}
        if by_storage:
            check_open(self.files, found)
        if self.path not in found:
            raise self._revoked()

    def _revoked(self) -> spec_errors.ConcurrentModificationError:
        return spec_errors.ConcurrentModificationError(
            f"{self.files.location}: a clean-up presumed this write dead, since its lease had "
            "expired, and may have removed its files; nothing was committed, run it again"
        )

    @contextlib.contextmanager
    def explaining_missing_files(self) -> Iterator[None]:
        """If reading the write's own files fails in the block, check whether a clean-up removed them.

        Raises:
            ConcurrentModificationError: (14) a clean-up revoked the lease.
        """
        try:
            yield
        except (OSError, RuntimeError, ValueError):
            self.check()
            raise

    def refresh(self) -> None:
        """Write a heartbeat, unless the lease was revoked."""
        if self.files.stat(self.path) is not None:
            self.files.put(self.path + HEARTBEAT, b"")

    @contextlib.contextmanager
    def kept_alive(self, *, end: bool = False) -> Iterator[Self]:
        """Refresh the lease from a thread for the duration of the block.

        Args:
            end: whether to release it when the block ends, also by an error.
        """
        done = threading.Event()
        thread = threading.Thread(
            target=self._keep_alive, args=(done,), name="lance-write-lease", daemon=True
        )
        thread.start()
        try:
            yield self
        finally:
            done.set()
            thread.join()
            if end:
                self.end()

    def _keep_alive(self, done: threading.Event) -> None:
        while not done.wait(REFRESH):
            try:
                self.refresh()
            except spec_errors.LanceNamespaceError as error:
                _log.warning("The lease of a running write could not be renewed: %s", error)

    def end(self) -> None:
        """Release the lease, which may have been revoked.

        If a request to create a version got no answer, the lease remains until it has expired: the request
        may take effect until then.
        """
        ended = [] if self.unanswered else [self.path]
        self.files.remove_outdated(*ended, self.path + HEARTBEAT, *self.leftovers)


def acquire_lease(dataset: DatasetRef) -> WriteLease:
    """Acquire a lease for a write that begins now; the caller must keep it alive and end it.

    Args:
        dataset: the dataset to write to; it need not exist yet.
    """
    files = dataset.manifests
    files.create_location()
    lease = WriteLease(files, f"{LEASES}/{uuid.uuid4()}")
    files.put(lease.path, f"process {os.getpid()} on {socket.gethostname()}".encode())
    return lease


def stray_heartbeats(files: TableFiles, before: datetime) -> list[str]:
    """Return the heartbeat files older than a given time whose leases are gone."""
    found = {file.path: file.modified for file in files.below(LEASES)}
    return [
        path
        for path, modified in found.items()
        if path.endswith(HEARTBEAT) and path.removesuffix(HEARTBEAT) not in found and modified < before
    ]
