"""Key records: for each idempotency key, one small object for each attempt to commit under it.

A driver writes the record before it commits, named by the key's digest, and by the version and the UUID of
the transaction that it is about to commit as exactly that version. So

- a key without records was never committed, which one listing shows, whatever the age of the table;
- a record whose version has another transaction belongs to an attempt that failed.

After the commit a second, empty object confirms it. Whether the version is part of the table's history once
it is cleaned up, its lineage says, see `lineage`. Only the names are decisive; the content has the result of
the commit, for a rerun.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from airflow_provider_lancens.namespace.storage.json_records import record_fields
from airflow_provider_lancens.namespace.storage.object_store import RECORDED
from airflow_provider_lancens.namespace.storage.table_files import StoredFile, TableFiles
from airflow_provider_lancens.spark.keys.commit_lineage import LINEAGE, Point
from airflow_provider_lancens.spark.keys.keyed_commit import IDEMPOTENCY_KEY, Counts, KeyedCommit

if TYPE_CHECKING:
    from lance import Transaction

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


def has_records(transaction: Transaction) -> bool:
    """Return whether a transaction was committed under a key, after that got its record."""
    properties = transaction.transaction_properties or {}
    key = properties.get(IDEMPOTENCY_KEY, "")
    return bool(key) and not is_unique(key) and LINEAGE in properties


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
    vouched: tuple[Point, ...] = ()
    """The versions of which a user has said that its rows are in them."""

    @property
    def path(self) -> str:
        """Path of the record, relative to the table's location."""
        return f"{folder_of(self.digest)}/{self.version}-{self.uuid}"

    @property
    def confirmations(self) -> list[str]:
        """The paths of what confirms it."""
        return [self.path + CONFIRMED, *(_vouching(self.path, point) for point in self.vouched)]


def write_record(files: TableFiles, record: KeyRecord, key: str, commit: KeyedCommit) -> None:
    """Write the record of an attempt; `key` may be empty if only its digest is known."""
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
    fields = record_fields(files.read(record.path))
    if not fields:
        return None
    added = fields.get("data_files")
    return KeyedCommit(
        record.version,
        record.uuid,
        Counts.parse(fields),
        str(fields.get("fingerprint", "")),
        str(fields.get("execution_id", "")),
        kind=str(fields.get("kind", "")),
        files=tuple(map(str, added)) if isinstance(added, list) else (),
    )


def confirm(files: TableFiles, record: KeyRecord) -> None:
    """Confirm that an attempt was committed."""
    files.put(record.path + CONFIRMED, b"")


def unconfirm(files: TableFiles, record: KeyRecord) -> None:
    """Remove the confirmation of an attempt of which isn't known any more whether it was committed."""
    if files.stat(record.path) is None:
        files.put(record.path, b"")  # it was lost, and the attempt known by its confirmation
    files.remove(record.path + CONFIRMED)


def vouch(files: TableFiles, record: KeyRecord, newest: Point) -> None:
    """Record that the rows of an attempt are in a version, as a user says."""
    files.put(_vouching(record.path, newest), b"")


def retract(files: TableFiles, records: Iterable[KeyRecord]) -> None:
    """Remove records, the confirmations first, which count without their record."""
    found = list(records)
    if paths := [path for one in found for path in (*one.confirmations, one.path)]:
        files.remove(*paths)


def _vouching(path: str, point: Point) -> str:
    return f"{path}{CONFIRMED}-{point.version}-{point.id}"


def folder_of(key_digest: str) -> str:
    """Return the folder of a key's records."""
    return f"{KEYS}/{key_digest[:_SHARD]}/{key_digest}"


def records_in(found: Iterable[StoredFile]) -> list[KeyRecord]:
    """Return the records among files, by version; one that is lost is known by what confirms it."""
    confirmed: set[str] = set()
    vouched: dict[str, set[Point]] = {}
    for file in found:
        name = _NAME.fullmatch(file.path)
        if name is None:
            continue
        points = vouched.setdefault(name["record"], set())
        if name["newest"]:
            points.add(Point(int(name["newest"]), name["id"]))
        elif name["confirmed"]:
            confirmed.add(name["record"])
    return sorted(
        _record(path, confirmed=path in confirmed, vouched=tuple(sorted(points)))
        for path, points in vouched.items()
    )


def _record(path: str, *, confirmed: bool, vouched: tuple[Point, ...]) -> KeyRecord:
    folder, _, name = path.rpartition("/")
    version, _, transaction = name.partition("-")
    return KeyRecord(int(version), transaction, folder.rpartition("/")[2], confirmed, vouched)
