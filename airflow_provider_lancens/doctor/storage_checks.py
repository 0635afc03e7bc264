"""The storage of a table: whether files can be written as a commit needs it, and its clock."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from airflow_provider_lancens.doctor.findings import Finding
from airflow_provider_lancens.namespace.locations import is_local, normalize
from airflow_provider_lancens.namespace.storage.table_files import TableFiles
from airflow_provider_lancens.redaction import redact

_FOLDER = "_lancens"
_SKEW_SECONDS = 60


def check_storage(location: str, storage_options: Mapping[str, str]) -> Iterator[Finding]:
    """Write, read, list and remove a file at a location, which is left as it was.

    Args:
        location: a table's root.
        storage_options: Lance's storage options for it.
    """
    if is_local(location):
        Path(normalize(location)).mkdir(parents=True, exist_ok=True)
    files, path = TableFiles(location, storage_options), f"{_FOLDER}/doctor-{uuid.uuid4().hex}"
    started, now = time.monotonic(), datetime.now(UTC)
    files.create(path, b"first")
    try:
        milliseconds = (time.monotonic() - started) * 1000
        yield _conditional_writes(files, path)
        yield from _reads(files, path, redact(location), milliseconds)
        yield from _clock(files, path, now)
    finally:
        files.remove(path)


def _conditional_writes(files: TableFiles, path: str) -> Finding:
    if not files.create(path, b"second"):
        return Finding("ok", "storage", "refuses to overwrite a file that exists, as commits require")
    return Finding(
        "problem",
        "storage",
        "does not support conditional writes: it overwrites an existing file. Two commits of one version "
        "can both succeed, and one of them is lost",
        "Use a store with conditional writes (If-None-Match), or tables with managed_by=impl.",
    )


def _reads(files: TableFiles, path: str, location: str, milliseconds: float) -> Iterator[Finding]:
    listed = path in {file.path for file in files.below(_FOLDER)}
    if files.read(path) is None or not listed:
        yield Finding("problem", "storage", f"{location}: a file that was written is not found")
    else:
        text = f"may write, read, list and delete at {location}; a write takes {milliseconds:.0f} ms"
        yield Finding("ok", "storage", text)


def _clock(files: TableFiles, path: str, now: datetime) -> Iterator[Finding]:
    file = files.stat(path)
    skew = abs((file.modified - now).total_seconds()) if file else 0
    if skew < _SKEW_SECONDS:
        yield Finding("ok", "clock", "this machine and the storage agree on the time")
        return
    yield Finding(
        "warning",
        "clock",
        f"this machine and the storage differ by {skew:.0f} s, so clean-ups misjudge the age of files",
        "Synchronize this machine's clock.",
    )
