"""Tables of any age within seconds: what as many ingestions would have left, without making each.

The first versions are committed by Lance, as a driver commits them: each overwrites the table with one row,
under an idempotency key of its own. All others are copies of the last of these with another version,
transaction, key, data file and time. So the table has as many manifests, transactions, data files and key
records as versions, and its newest version refers to one file, as after a compaction.
"""

import struct
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
from lance.fragment import write_fragments

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.storage.manifests import Manifests
from airflow_provider_lancens.namespace.storage.object_store import VERSIONS, manifest_names
from airflow_provider_lancens.spark.commit.append_overwrite import KINDS
from airflow_provider_lancens.spark.commit.committer import Committer
from airflow_provider_lancens.spark.keys import Counts, KeyedWrite
from airflow_provider_lancens.spark.keys.commit_lineage import (
    LINEAGE,
    LONG,
    CommittedVersion,
    Lineage,
    transaction_id,
)
from airflow_provider_lancens.spark.keys.key_attempts import lineage_below
from airflow_provider_lancens.spark.keys.key_records import CONFIRMED, INDEX, KeyRecord, digest
from airflow_provider_lancens.spark.table.dataset_ref import DatasetRef
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable
from airflow_provider_lancens.spark.table.storage_versions import StorageVersions
from tests.servers.s3_bucket import Stored
from tests.servers.s3_double import S3Double

ROW = pa.table({"n": [1]})
AGE = timedelta(days=60)
"""Age of the first version; each further one is a second younger."""
_TEMPLATE = 3
_FOOTER = 16
_VARINT, _BYTES = 0, 2
# Field numbers of Lance's protocol buffers.
_FRAGMENTS, _VERSION, _TIMESTAMP, _TRANSACTION_FILE = 2, 3, 7, 12
_READ_VERSION, _UUID, _PROPERTIES = 1, 2, 4

Put = Callable[[str, bytes], None]
"""Stores a file, by its path relative to the table's location."""


def target_at(location: str, storage_options: dict[str, str] | None = None) -> ResolvedTable:
    """A storage-managed table at a location, which nothing need be written to yet."""
    dataset = DatasetRef(location, storage_options or {})
    return ResolvedTable(TableId.parse("orders"), dataset, StorageVersions(dataset))


def key_of(version: int) -> str:
    """The idempotency key that committed a version."""
    return f"day-{version}"


def commit(target: ResolvedTable, version: int) -> None:
    """Overwrite a table as a driver does, by its next version."""
    options = dict(target.dataset.storage_options)
    fragments = write_fragments(ROW, target.dataset.location, mode="overwrite", storage_options=options)
    change = KINDS["overwrite"](str(target.id), version - 1 or None, ROW.schema, fragments)
    Committer(target, KeyedWrite(key_of(version)), Counts(1, 1, 100)).commit(change, version - 1)


def local_table(folder: Path, versions: int) -> ResolvedTable:
    """A table of so many versions on local files."""
    target = target_at(str(folder))

    def put(path: str, content: bytes) -> None:
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)

    _grow(target, versions, put)
    return target


def s3_table(s3: S3Double, name: str, versions: int) -> ResolvedTable:
    """A table of so many versions on a double of S3."""
    target = target_at(f"s3://{s3.bucket_name}/{name}", s3.storage)
    _grow(target, versions, lambda path, content: s3.bucket.put(f"{name}/{path}", Stored.of(content)))
    return target


def _grow(target: ResolvedTable, versions: int, put: Put) -> None:
    for version in range(1, _TEMPLATE + 1):
        commit(target, version)
    template = _Template.of(target)
    stated, below = template.lineage, Lineage(0, 1)
    for version in range(_TEMPLATE + 1, versions):
        own = str(uuid.uuid4())
        if len(stated.ids) >= LONG:
            full = stated if stated.segment is None else stated.onto(below, stated.segment)
            point = CommittedVersion(version - 1, stated.ids[-1])
            put(f"{INDEX}/lineage-{point.version}-{point.id}.json", full.text().encode())
            stated, below = Lineage(version - 1, 1, segment=point, keyed=True), full
        for path, content in template.files_of(version, own, stated):
            put(path, content)
        stated = replace(stated, version=version, ids=(*stated.ids, transaction_id(own)))
    if versions > _TEMPLATE:
        commit(target, versions)


@dataclass(frozen=True)
class _Template:
    """A version as Lance wrote it, from which others are made."""

    transaction: bytes
    manifest: bytes
    footer: bytes
    uuid: str
    data_file: str
    data: bytes
    record: bytes
    lineage: Lineage

    @classmethod
    def of(cls, target: ResolvedTable) -> "_Template":
        files = Manifests(target.dataset.location, target.dataset.storage_options)
        content = files.read_version(_TEMPLATE)
        latest = target.open_latest()
        assert content
        assert latest
        [fragment] = latest.get_fragments()
        [position] = struct.unpack("<Q", content[-_FOOTER:-8])
        transaction, manifest = _block(content, 0), _block(content, position)
        own = str(latest.read_transaction(_TEMPLATE).uuid)
        lineage = lineage_below(files, latest)
        data_file = fragment.metadata.files[0].path
        record = files.read(KeyRecord(_TEMPLATE, own, digest(key_of(_TEMPLATE))).path)
        data = files.read(f"data/{data_file}")
        assert record
        assert data
        return cls(transaction, manifest, content[-8:], own, data_file, data, record, lineage)

    def files_of(self, version: int, own: str, lineage: Lineage) -> Iterator[tuple[str, bytes]]:
        data_file = f"{own.replace('-', ''):0>{len(self.data_file) - len('.lance')}}.lance"
        transaction = self._transaction(version, own, data_file, lineage)
        manifest = self._manifest(version, own, data_file)
        record = KeyRecord(version, own, digest(key_of(version)))
        yield f"data/{data_file}", self.data
        described = self._renamed(self.record, data_file)
        assert isinstance(described, bytes)
        for before, after in ((key_of(_TEMPLATE), key_of(version)), (self.uuid, own)):
            described = described.replace(before.encode(), after.encode())
        yield (
            record.path,
            described.replace(f'"version": {_TEMPLATE}'.encode(), f'"version": {version}'.encode()),
        )
        yield f"_transactions/{version - 1}-{own}.txn", transaction
        yield f"{VERSIONS}/{manifest_names(version)[0]}", _file_of(transaction, manifest, self.footer)
        yield record.path + CONFIRMED, b""

    def _transaction(self, version: int, own: str, data_file: str, lineage: Lineage) -> bytes:
        keys = (key_of(_TEMPLATE).encode(), key_of(version).encode())

        def changed(number: int, value: int | bytes) -> int | bytes:
            if number == _READ_VERSION:
                return version - 1
            if number == _UUID:
                return own.encode()
            if number == _PROPERTIES and isinstance(value, bytes) and keys[0] in value:
                name = _fields(value)[0][2]
                return _encoded([(1, _BYTES, name), (2, _BYTES, keys[1])])
            if number == _PROPERTIES and isinstance(value, bytes) and LINEAGE.encode() in value:
                return _encoded([(1, _BYTES, LINEAGE.encode()), (2, _BYTES, lineage.text().encode())])
            return self._renamed(value, data_file)

        return _encoded([(n, wire, changed(n, value)) for n, wire, value in _fields(self.transaction)])

    def _manifest(self, version: int, own: str, data_file: str) -> bytes:
        then = int((datetime.now(UTC) - AGE).timestamp()) + version
        changes: dict[int, int | bytes] = {
            _VERSION: version,
            _TIMESTAMP: _encoded([(1, _VARINT, then)]),
            _TRANSACTION_FILE: f"{version - 1}-{own}.txn".encode(),
        }
        fields = _fields(self.manifest)
        return _encoded([(n, wire, changes.get(n, self._renamed(v, data_file))) for n, wire, v in fields])

    def _renamed(self, value: int | bytes, data_file: str) -> int | bytes:
        if isinstance(value, int):
            return value
        return value.replace(self.data_file.encode(), data_file.encode())


def _block(content: bytes, position: int) -> bytes:
    [length] = struct.unpack("<I", content[position : position + 4])
    return content[position + 4 : position + 4 + length]


def _file_of(transaction: bytes, manifest: bytes, footer: bytes) -> bytes:
    blocks = [struct.pack("<I", len(block)) + block for block in (transaction, manifest)]
    return b"".join([*blocks, struct.pack("<Q", len(blocks[0])), footer])


def _fields(message: bytes) -> list[tuple[int, int, int | bytes]]:
    """The fields of a protocol buffer that has only numbers and bytes: number, wire type, value."""
    at, found = 0, []
    while at < len(message):
        tag, at = _number(message, at)
        value: int | bytes
        value, at = _number(message, at)
        if tag & 7 == _BYTES:
            length = int(value)
            value, at = message[at : at + length], at + length
        found.append((tag >> 3, tag & 7, value))
    return found


def _encoded(fields: list[tuple[int, int, int | bytes]]) -> bytes:
    parts = bytearray()
    for number, wire, value in fields:
        parts += _varint(number << 3 | wire)
        parts += _varint(value) if isinstance(value, int) else _varint(len(value)) + value
    return bytes(parts)


def _number(message: bytes, at: int) -> tuple[int, int]:
    shift = value = 0
    while True:
        byte = message[at]
        value, at, shift = value | (byte & 127) << shift, at + 1, shift + 7
        if byte < 128:
            return value, at


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])
