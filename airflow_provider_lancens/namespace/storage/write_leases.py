"""Leases of running writes as others find them beside the data, and the gate that closes a table to writes.

A write has a lease from before its first file until after its commit, see `spark.commit.write_lease`. It
lists this folder right before its commit: one request shows whether its own lease is held and whether a gate
is closed. A gate is closed while, and after, the metastore becomes the version authority: from then on no
write commits by the storage alone. A conversion closes the gate, then lists the leases: so a write or the
conversion sees the other.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.storage.object_store import RECORDED
from airflow_provider_lancens.namespace.storage.table_files import TableFiles

LEASES = f"{RECORDED}/writes"
HEARTBEAT = ".alive"
"""Suffix of the heartbeat, and of the files by which running tasks report their progress."""
REFRESH = 60.0
"""Seconds between two heartbeats of a running write."""
SILENCE = timedelta(seconds=10 * REFRESH)
"""Time without a heartbeat after which a drop or a conversion presumes a write dead, and the least after
which a removal of orphans does; a clean-up of versions waits for a day."""
_GATE = f"{LEASES}/metastore-"
_CLOCK = f"{RECORDED}/clock-"
_WAIT = 5.0
"""Seconds for which writes that are about to end are waited for."""
_PAUSE = 0.25
_LONGEST_NAME = 100


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """A lease as a clean-up lists it."""

    path: str
    began: datetime
    refreshed: datetime

    @property
    def paths(self) -> tuple[str, str]:
        """Paths of the lease and of its heartbeat."""
        return self.path, self.path + HEARTBEAT


@dataclass(frozen=True, slots=True)
class Gate:
    """A closed gate."""

    path: str
    closed: datetime

    @property
    def token(self) -> str:
        """The token of the conversion that closed it."""
        return self.path.removeprefix(_GATE)


def leases_of(files: TableFiles) -> list[LeaseRecord]:
    """Return the leases stored beside a dataset, of running writes and of writes presumed dead."""
    times = {file.path: file.modified for file in files.below(LEASES)}
    return [
        LeaseRecord(path, began, max(began, times.get(path + HEARTBEAT, began)))
        for path, began in times.items()
        if not path.endswith(HEARTBEAT) and not path.startswith(_GATE)
    ]


def close_gate(files: TableFiles, token: str) -> None:
    """Close the gate: a write that checks its lease from now on isn't committed by the storage."""
    files.create_location()  # an empty table has no folder yet
    files.put(f"{_GATE}{token}", b"")


def gates_of(files: TableFiles) -> list[Gate]:
    """Return the gates that are closed."""
    return [Gate(file.path, file.modified) for file in files.below(LEASES) if file.path.startswith(_GATE)]


def open_gate(files: TableFiles, token: str) -> None:
    """Open the gate that a conversion has closed, if it is closed."""
    open_gates(files, [gate for gate in gates_of(files) if gate.token == token])


def open_gates(files: TableFiles, gates: Collection[Gate]) -> None:
    """Open gates that were closed."""
    if gates:
        files.remove(*(gate.path for gate in gates))


def check_open(files: TableFiles, found: Collection[str] | None = None) -> None:
    """Check that no gate is closed.

    Args:
        files: the files at the table's location.
        found: the paths of the files in the folder of leases, if they have just been listed.

    Raises:
        StaleTableError: (14) a gate is closed.
    """
    paths = [file.path for file in files.below(LEASES)] if found is None else found
    if any(path.startswith(_GATE) for path in paths):
        # Imported here, since executors load no error classes before an error.
        from airflow_provider_lancens.namespace.error_types import StaleTableError

        raise StaleTableError(
            f"{files.location}: the metastore becomes the version authority of this table, or has become it "
            "since this write began; nothing was committed, run it again"
        )


def wait_for_writes(files: TableFiles, what: str) -> list[LeaseRecord]:
    """Wait a few seconds for the running writes to end; one request if there are none.

    Args:
        files: the files at the table's location.
        what: what is refused while others write, for the message: ``table db$t can't be dropped``.

    Returns:
        The leases of writes that are presumed dead: they have sent no heartbeat for ten minutes.

    Raises:
        ConcurrentModificationError: (14) a write is still running.
    """
    end = time.monotonic() + _WAIT
    while leases := leases_of(files):
        limit = _now(files) - SILENCE
        alive = [lease for lease in leases if lease.refreshed >= limit]
        if not alive:
            return leases
        if time.monotonic() >= end:
            raise spec_errors.ConcurrentModificationError(_refusal(files, what, alive))
        time.sleep(_PAUSE)
    return []


def _now(files: TableFiles) -> datetime:
    """Return the time by the storage's clock, by which the leases have theirs.

    Who may only read has no other clock than the machine's: what is refused for a write that has ended is
    repeated, while an unknown time would let a cascade go on beside a running write.
    """
    path = f"{_CLOCK}{uuid.uuid4()}"
    try:
        files.put(path, b"")
    except spec_errors.PermissionDeniedError:
        return datetime.now(UTC)
    file = files.stat(path)
    files.remove_outdated(path)
    if file is None:
        raise spec_errors.ServiceUnavailableError(
            f"{files.location}: {path} is gone as soon as it was written"
        )
    return file.modified


def _refusal(files: TableFiles, what: str, alive: Collection[LeaseRecord]) -> str:
    newest = max(alive, key=lambda lease: lease.refreshed)
    content = files.read(newest.path) or b""
    name = "".join(filter(str.isprintable, content.decode(errors="replace")))[:_LONGEST_NAME]
    writer = f"by {name} " if name else ""
    others = f" and {len(alive) - 1} more" if len(alive) > 1 else ""
    return (
        f"{what} while others write to it: a write {writer}began at {newest.began:%Y-%m-%d %H:%M:%S} UTC"
        f"{others}. Run this again when it has ended, or end it; if its process is gone, its lease "
        f"{newest.path} ends at {newest.refreshed + SILENCE:%Y-%m-%d %H:%M:%S} UTC"
    )
