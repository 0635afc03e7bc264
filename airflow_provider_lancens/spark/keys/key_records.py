"""Key records: for each idempotency key, one small object for each attempt to commit under it.

A driver writes the record before it commits, named by the key's digest, and by the version and the UUID of
the transaction that it is about to commit as exactly that version. So

- a key without records was never committed, which one listing shows, whatever the age of the table;
- a record whose version has another transaction belongs to an attempt that failed.

After the commit a second, empty object confirms it, for the time after the version is cleaned up. Only
the names are decisive; the content is informational.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self

from airflow_provider_lancens.namespace.storage.json_records import record_fields
from airflow_provider_lancens.namespace.storage.object_store import RECORDED
from airflow_provider_lancens.namespace.storage.table_files import StoredFile, TableFiles
from airflow_provider_lancens.spark.keys.keyed_commit import Counts, KeyedCommit

KEYS = f"{RECORDED}/keys"
"""Folder of the records. A shard's name is the first two hex digits of the digests in it."""
_SHARD = 2
_DIGITS = 32
"""Hex digits of a digest: 128 bits."""
CONFIRMED = ".committed"
"""Suffix of the object that confirms a record."""
_UNIQUE = re.compile(r"once-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Pattern of the keys of `unique_key`; no key of a user matches it."""


def digest(text: str) -> str:
    """Return a short digest of a text, which doesn't reveal it."""
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def unique_key() -> str:
    """Return a key for a write that has none: it is never looked up, so it gets no records."""
    return f"once-{uuid.uuid4()}"


def is_unique(key: str) -> bool:
    """Return whether a key is of a write that has none, and which therefore has no records."""
    return _UNIQUE.fullmatch(key) is not None


@dataclass(frozen=True, slots=True, order=True)
class KeyRecord:
    """An attempt to commit a version under a key."""

    version: int
    uuid: str
    """The UUID of its transaction."""
    digest: str
    """The key's digest."""
    confirmed: bool = False
    """Whether it is known to be committed, also once the version is cleaned up."""

    @classmethod
    def parse(cls, path: str, *, confirmed: bool = False) -> Self | None:
        """Parse the path of a record; None if it is another file's."""
        folder, _, name = path.rpartition("/")
        version, _, transaction = name.partition("-")
        # A local object store stages a file as name#1.
        if not version.isdecimal() or not transaction or "#" in transaction or path.endswith(CONFIRMED):
            return None
        return cls(int(version), transaction, folder.rpartition("/")[2], confirmed)

    @property
    def path(self) -> str:
        """Path of the record, relative to the table's location."""
        return f"{folder_of(self.digest)}/{self.version}-{self.uuid}"


def write_record(files: TableFiles, record: KeyRecord, key: str, commit: KeyedCommit) -> None:
    """Write the record of an attempt; `key` may be empty if only its digest is known."""
    content = {
        "key": key,
        "version": commit.version,
        "transaction": commit.uuid,
        "fingerprint": commit.fingerprint,
        "execution_id": commit.execution_id,
        **commit.counts.as_dict(),
        "time": datetime.now(UTC).isoformat(),
    }
    files.put(record.path, json.dumps(content).encode())


def commit_of(files: TableFiles, record: KeyRecord) -> KeyedCommit:
    """Return the commit that a record describes; without counts if its content is lost."""
    fields = record_fields(files.read(record.path))
    fingerprint, execution_id = str(fields.get("fingerprint", "")), str(fields.get("execution_id", ""))
    return KeyedCommit(record.version, record.uuid, Counts.parse(fields), fingerprint, execution_id)


def confirm(files: TableFiles, record: KeyRecord) -> None:
    """Confirm that an attempt was committed."""
    files.put(record.path + CONFIRMED, b"")


def retract(files: TableFiles, records: Iterable[KeyRecord]) -> None:
    """Remove records, the confirmations first: without its record a confirmation means nothing."""
    found = list(records)
    if paths := [path for one in found for path in (one.path + CONFIRMED, one.path)]:
        files.remove(*paths)


def folder_of(key_digest: str) -> str:
    """Return the folder of a key's records."""
    return f"{KEYS}/{key_digest[:_SHARD]}/{key_digest}"


def records_in(found: Iterable[StoredFile]) -> list[KeyRecord]:
    """Return the records among files, by version."""
    paths = {file.path for file in found}
    parsed = (KeyRecord.parse(path, confirmed=path + CONFIRMED in paths) for path in paths)
    return sorted(record for record in parsed if record is not None)
