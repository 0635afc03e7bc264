"""The storage of a table: whether it writes, lists and deletes files as Lance needs it, and its clock."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from airflow_provider_lancens.doctor.findings import Finding, run
from airflow_provider_lancens.namespace.locations import Location, is_local
from airflow_provider_lancens.namespace.storage.conditional_writes import has_conditional_writes
from airflow_provider_lancens.namespace.storage.object_store import is_directory_bucket
from airflow_provider_lancens.namespace.storage.table_files import TableFiles
from airflow_provider_lancens.redaction import redact

_FOLDER = "_lancens"
_STORAGE, _CLOCK = "storage", "clock"
_SKEW_SECONDS = 60
_LISTED = 8
"""Files whose order in a listing is looked at: by chance it is that of their names once in 40,000 times."""


def check_storage(location: str, storage_options: Mapping[str, str]) -> Iterator[Finding]:
    """Try on files that are removed what Lance and this package need of a storage.

    Args:
        location: a table's root, which is left as it was.
        storage_options: Lance's storage options for it.
    """
    location = Location.of(location)
    if is_local(location):
        Path(location).mkdir(parents=True, exist_ok=True)
    trial = _Trial(TableFiles(location, storage_options))
    yield from trial.findings()


@dataclass(slots=True)
class _Trial:
    """What is tried at one location; a trial that fails is a finding, and the next one is made."""

    files: TableFiles
    folder: str = field(default_factory=lambda: f"{_FOLDER}/doctor-{uuid.uuid4().hex}")
    written: list[str] = field(default_factory=list)

    def findings(self) -> Iterator[Finding]:
        writes = list(run(_STORAGE, self._writes))
        yield from writes
        if writes[-1].level == "problem":
            return
        checks: tuple[Callable[[], Iterable[Finding]], ...] = (self._creates, self._reads, self._lists)
        for check in checks:
            yield from run(_STORAGE, check)
        yield from run(_CLOCK, self._clock)
        yield from run(_STORAGE, self._deletes)

    def _path(self, name: object) -> str:
        return f"{self.folder}/{name}"

    def _writes(self) -> Iterator[Finding]:
        started = time.monotonic()
        for number in reversed(range(_LISTED)):
            self.files.put(self._path(number), b"0123456789")
            self.written.append(self._path(number))
        milliseconds = (time.monotonic() - started) * 1000 / _LISTED
        where = redact(self.files.location)
        yield Finding("ok", _STORAGE, f"may write at {where}; a write takes {milliseconds:.0f} ms")

    def _creates(self) -> Iterator[Finding]:
        if has_conditional_writes(self.files, self._path("created")):
            self.written.append(self._path("created"))
            yield Finding("ok", _STORAGE, "refuses to overwrite a file that exists, as commits require")
            return
        yield Finding(
            "problem",
            _STORAGE,
            "does not support conditional writes: it overwrites an existing file. Two commits of one version "
            "could both succeed, and one of them be lost: commits are refused where the storage decides",
            "Use a store with conditional writes (If-None-Match), or tables with managed_by=impl.",
        )

    def _reads(self) -> Iterator[Finding]:
        if self.files.read_range(self._path(0), 3, 6) == b"345":
            yield Finding("ok", _STORAGE, "reads files, and ranges of them")
        else:
            yield Finding("problem", _STORAGE, "ignores the range of a read, by which Lance reads columns")

    def _lists(self) -> Iterator[Finding]:
        names = self.files.names_as_listed(self.folder)
        missing = {str(number) for number in range(_LISTED)}.difference(names)
        if missing:
            yield Finding("problem", _STORAGE, "a file that was written is not listed, or not yet")
        elif is_local(self.files.location) or names == sorted(names):
            yield Finding("ok", _STORAGE, "lists files")
        elif is_directory_bucket(self.files.location):
            yield Finding("ok", _STORAGE, "lists files in no order, as S3's directory buckets do")
        else:
            yield Finding(
                "problem",
                _STORAGE,
                "lists files in no order, so that Lance takes an older version for the newest",
                "Use a store that lists by name.",
            )

    def _clock(self) -> Iterator[Finding]:
        now = datetime.now(UTC)
        self.files.put(self._path(0), b"")
        file = self.files.stat(self._path(0))
        skew = abs((file.modified - now).total_seconds()) if file else 0
        if skew < _SKEW_SECONDS:
            yield Finding("ok", _CLOCK, "this machine and the storage agree on the time")
            return
        yield Finding(
            "warning",
            _CLOCK,
            f"this machine and the storage differ by {skew:.0f} s, so clean-ups misjudge the age of files",
            "Synchronize this machine's clock.",
        )

    def _deletes(self) -> Iterator[Finding]:
        first, *others = self.written
        self.files.remove(first)
        self.files.remove(*others)
        if left := self.files.names_as_listed(self.folder):
            yield Finding("problem", _STORAGE, f"{len(left)} files that were deleted are still listed")
        elif self.files.supports_bulk_deletes:
            yield Finding("ok", _STORAGE, "deletes files")
        else:
            yield Finding(
                "warning",
                _STORAGE,
                "refuses bulk deletes, so files are deleted one by one",
                "Set storage.aws_disable_bulk_delete=true, which Lance needs where it deletes by itself.",
            )
