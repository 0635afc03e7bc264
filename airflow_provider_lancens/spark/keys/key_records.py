"""The files that a table has for each key, and their format: attempts to commit, an index, expired keys.

An attempt is recorded before its commit is made, so a key without records was never committed, unless it has
expired, or records of the table were lost: both are recorded apart.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self
from uuid import uuid4

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.storage.json_records import record_fields
from airflow_provider_lancens.namespace.storage.object_store import RECORDED
from airflow_provider_lancens.namespace.storage.table_files import StoredFile, TableFiles
from airflow_provider_lancens.spark.keys.commit_lineage import CommittedVersion, LineageSegments
from airflow_provider_lancens.spark.keys.keyed_commit import Counts, KeyedCommit

KEYS = f"{RECORDED}/keys"
"""Folder of the records. A shard's name is the first two hex digits of the digests in it."""
_SHARD = 2
_DIGITS = 32
"""Hex digits of a digest: 128 bits."""
CONFIRMED = ".committed"
"""Suffix of the object that confirms a record."""
_NAME = re.compile(
    r"(?P<record>.*/[0-9]{1,20}-[^/#]+?)(?P<confirmed>\.committed)?"
    r"(?(confirmed)(-(?P<newest>[0-9]{1,20})-(?P<id>[0-9a-f]{8}))?)"
)
"""Pattern of the paths of records and of what confirms them; a local object store stages one as name#1."""
_MAX_FILES = 8
"""Data files in a record: where one of them still is, the commit is in the table."""


def digest(text: str) -> str:
    """Return a short digest of a text, which doesn't reveal it."""
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


@dataclass(frozen=True, slots=True, order=True)
class KeyRecord:
    """An attempt to commit a version under a key."""

    version: int
    uuid: str
    """The UUID of its transaction."""
    digest: str
    """The key's digest."""
    confirmed: bool = False
    """Whether it was found to be committed."""
    confirmed_at: tuple[CommittedVersion, ...] = ()
    """The versions that contain the attempt's rows, as a user has confirmed."""

    @property
    def path(self) -> str:
        """Path of the record, relative to the table's location."""
        return f"{folder_of(self.digest)}/{self.version}-{self.uuid}"

    @property
    def confirmations(self) -> list[str]:
        """The paths of what confirms it."""
        return [self.path + CONFIRMED, *(_confirmation_at(self.path, point) for point in self.confirmed_at)]


def write_record(files: TableFiles, record: KeyRecord, key: str, commit: KeyedCommit) -> None:
    """Write the record of an attempt."""
    content = {
        "key": key,
        "version": commit.version,
        "transaction": commit.uuid,
        "fingerprint": commit.fingerprint,
        "execution_id": commit.execution_id,
        "kind": commit.kind,
        "data_files": commit.files[:_MAX_FILES],
        **commit.counts.as_dict(),
        "time": datetime.now(UTC).isoformat(),
    }
    files.put(record.path, json.dumps(content).encode())


def commit_of(files: TableFiles, record: KeyRecord) -> KeyedCommit | None:
    """Return the commit that a record describes; None if its content is lost.

    A machine that lost power may have lost it; the name is what is decisive.
    """
    found = key_and_commit_of(files, record)
    return None if found is None else found[1]


def key_and_commit_of(files: TableFiles, record: KeyRecord) -> tuple[str, KeyedCommit] | None:
    """Return the key and the commit that a record describes; None if its content is lost."""
    fields = record_fields(files.read(record.path))
    if not fields:
        return None
    added = fields.get("data_files")
    return str(fields.get("key", "")), KeyedCommit(
        record.version,
        record.uuid,
        Counts.parse(fields),
        str(fields.get("fingerprint", "")),
        str(fields.get("execution_id", "")),
        kind=str(fields.get("kind", "")),
        files=tuple(map(str, added)) if isinstance(added, list) else (),
    )


def records_of_versions(files: TableFiles, versions: Collection[int]) -> list[KeyRecord]:
    """Return the records of attempts to commit these versions, by a listing of all records."""
    found: dict[str, KeyRecord] = {}
    for page in files.all_below(KEYS):
        for record in records_in(page):
            if record.version in versions:
                # A record and its confirmation may be on two pages.
                other = found.get(record.path, record)
                found[record.path] = record if record.confirmed else other
    return sorted(found.values())


def confirm(files: TableFiles, record: KeyRecord) -> None:
    """Confirm that an attempt was committed."""
    files.put(record.path + CONFIRMED, b"")


def unconfirm(files: TableFiles, record: KeyRecord) -> None:
    """Remove the confirmation of an attempt whose outcome is no longer known."""
    if files.stat(record.path) is None:
        files.put(record.path, b"")  # the record was lost; so far only the confirmation showed the attempt
    files.remove(record.path + CONFIRMED)


def confirm_at(files: TableFiles, record: KeyRecord, newest: CommittedVersion) -> None:
    """Record that the rows of an attempt are in a version, as a user has confirmed."""
    files.put(_confirmation_at(record.path, newest), b"")


def retract(files: TableFiles, records: Iterable[KeyRecord]) -> None:
    """Remove records, the confirmations first, which count without their record."""
    found = list(records)
    if paths := [path for record in found for path in (*record.confirmations, record.path)]:
        files.remove(*paths)


def _confirmation_at(path: str, point: CommittedVersion) -> str:
    return f"{path}{CONFIRMED}-{point.version}-{point.id}"


def folder_of(key_digest: str) -> str:
    """Return the folder of a key's records."""
    return f"{KEYS}/{key_digest[:_SHARD]}/{key_digest}"


def records_in(found: Iterable[StoredFile]) -> list[KeyRecord]:
    """Return the records among files, by version; a lost record is known by the files that confirm it."""
    confirmed: set[str] = set()
    confirmed_at: dict[str, set[CommittedVersion]] = {}
    for file in found:
        name = _NAME.fullmatch(file.path)
        if name is None:
            continue
        points = confirmed_at.setdefault(name["record"], set())
        if name["newest"]:
            points.add(CommittedVersion(int(name["newest"]), name["id"]))
        elif name["confirmed"]:
            confirmed.add(name["record"])
    return sorted(
        _record(path, confirmed=path in confirmed, confirmed_at=tuple(sorted(points)))
        for path, points in confirmed_at.items()
    )


def _record(path: str, *, confirmed: bool, confirmed_at: tuple[CommittedVersion, ...]) -> KeyRecord:
    folder, _, name = path.rpartition("/")
    version, _, transaction = name.partition("-")
    return KeyRecord(int(version), transaction, folder.rpartition("/")[2], confirmed, confirmed_at)


INDEX = f"{RECORDED}/key-index"
"""Folder of the index."""
_COMPLETE = f"{INDEX}/index.json"
_LOST = f"{INDEX}/lost"
_EXPIRED = f"{INDEX}/expired"
EXPIRED_KEYS = f"{RECORDED}/expired-keys"
"""Folder of the expired keys, see `expired_keys`."""
FOLDERS = frozenset({KEYS, INDEX, EXPIRED_KEYS})
"""All folders of keys: no clean-up of other files touches them."""


@dataclass(frozen=True, slots=True)
class KeyIndex:
    """The index as listed."""

    files: TableFiles
    listed: Sequence[StoredFile]
    is_complete: bool
    """Whether every key that was ever committed has its records; false before `recover_keys`."""
    has_expired: bool
    """Whether any key has expired."""
    has_lost: bool = False
    """Whether the records of keys were lost whose versions were cleaned up."""

    @classmethod
    def of(cls, files: TableFiles) -> Self:
        """List the index of a table."""
        listed = files.below(INDEX)
        paths = [file.path for file in listed]
        return cls(
            files,
            listed,
            is_complete=_COMPLETE in paths,
            has_expired=_EXPIRED in paths,
            has_lost=_LOST in paths,
        )

    @property
    def segments(self) -> LineageSegments:
        """The segments of the table's lineage."""
        return LineageSegments.among(self.files, INDEX, self.listed)

    def mark_lost(self) -> None:
        """Record that the records of keys were lost, before any key counts as never committed."""
        self.files.put(_LOST, b"")

    def accept_lost(self) -> None:
        """Record that keys without records count as never committed, although records were lost."""
        self.files.remove(_LOST)

    def mark_expired(self) -> None:
        """Record that keys have expired; called before the records of the first are removed."""
        if not self.has_expired:
            self.files.put(_EXPIRED, b"")


def mark_complete(files: TableFiles) -> None:
    """Record that every key of a table has its records."""
    files.put(_COMPLETE, json.dumps({"format": 1}).encode())


def remove_leftovers(files: TableFiles, exists: Callable[[], bool]) -> None:
    """Remove the keys of a dataset that was deleted by hand, except for the folder of this package.

    Another driver may be about to create the dataset, so its record is kept: only the records of
    committed attempts are removed. A record that is kept by mistake is harmless: its version has another
    transaction.

    Args:
        files: the files at the table's location.
        exists: called after the listing, returns whether there is a dataset now, whose keys these are.
    """
    index = [file.path for file in files.below(INDEX)]
    expired = [file.path for page in files.all_below(EXPIRED_KEYS) for file in page]
    found = [file for page in files.all_below(KEYS) for file in page]
    records: list[KeyRecord] = [record for record in records_in(found) if record.confirmed]
    if not (index or expired or records) or exists():
        return
    files.remove(*index, *expired)
    retract(files, records)


_TRIES = 5
_UUID = 36
"""Characters of the UUID in a file's name; older names have no size before it."""


@dataclass(frozen=True, slots=True)
class ExpiredKeys:
    """The expired keys of a table."""

    files: TableFiles

    def contain(self, key_digest: str) -> bool:
        """Return whether a key has expired.

        Raises:
            InvalidTableStateError: (19) that isn't known, since a file lost its content.
        """
        shard = self._read(key_digest[:_SHARD])
        if key_digest not in shard.keys and shard.damaged:
            raise spec_errors.InvalidTableStateError(
                f"storage at {self.files.location}: {shard.damaged[0]}, a list of expired keys, has lost "
                "content, so that it cannot be determined whether a key was committed; nothing was written. "
                "Restore the file from a backup, or use on_existing_key='write_again'"
            )
        return key_digest in shard.keys

    def add(self, shard: str, digests: Collection[str]) -> None:
        """Add keys to a shard."""
        found = self._read(shard)
        text = "\n".join(sorted(found.keys.union(digests)))
        # The name has the length: if the file lost content, no key may count as new.
        self.files.put(f"{EXPIRED_KEYS}/{shard}/{len(text)}-{uuid4()}", text.encode())
        if found.complete:
            self.files.remove_outdated(*found.complete)

    def _read(self, shard: str) -> _Shard:
        for _ in range(_TRIES):
            paths = [file.path for file in self.files.below(f"{EXPIRED_KEYS}/{shard}")]
            contents = [self.files.read(path) for path in paths]
            if None not in contents:
                break
            # A clean-up has merged them meanwhile.
        read = {path: content for path, content in zip(paths, contents, strict=True) if content is not None}
        keys = frozenset(line for content in read.values() for line in content.decode().split("\n"))
        complete = [path for path, content in read.items() if _is_complete(path, content)]
        return _Shard(keys, complete, [path for path in read if path not in complete])


@dataclass(frozen=True, slots=True)
class _Shard:
    keys: frozenset[str]
    complete: list[str]
    """The files that have what they were written with."""
    damaged: list[str]


def _is_complete(path: str, content: bytes) -> bool:
    size, _, rest = path.rpartition("/")[2].partition("-")
    return len(rest) != _UUID or not size.isdecimal() or int(size) == len(content)
