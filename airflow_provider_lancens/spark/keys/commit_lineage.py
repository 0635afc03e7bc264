"""The lineage of a version: the transactions of the versions below it, and the versions that it restored.

Other clients clean up versions, and lose or remove the newest ones, whose numbers are then used again. So the
number of a removed version doesn't identify its commit. Each commit of this package therefore records in its
transaction the ids of the transactions below it. Once there are many, they are moved to a segment: a file of
the index, to which later commits refer.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from airflow_provider_lancens.namespace.storage.json_records import UNREADABLE
from airflow_provider_lancens.namespace.storage.table_files import StoredFile, TableFiles
from airflow_provider_lancens.spark.table.history import restored_version, transactions

if TYPE_CHECKING:
    from lance import LanceDataset, Transaction

_log = logging.getLogger(__name__)
LINEAGE = "lancens.lineage"
"""Property of a commit's transaction: the lineage of the version below it."""
LONG = 64
"""Ids in a commit after which they are moved to a segment."""
MAX_READ = 64
"""Transactions of others that a commit reads at most to find the lineage that it continues."""
MANY_READ = 32
"""Transactions that a lookup reads at least to store a segment, so that the next one needn't."""
_DIGITS = 8
"""Hex digits of an id."""
_SEGMENT = re.compile(rf"(lineage|settled)-(\d{{1,20}})-([0-9a-f]{{{_DIGITS}}})\.json")
Restores = tuple[tuple[int, int], ...]
"""Restores, each with the version that it made and the version that it restored."""


def transaction_id(uuid: str) -> str:
    """Return the id of a transaction in a lineage, a digest of its UUID; empty if that is unknown."""
    return hashlib.sha256(uuid.encode()).hexdigest()[:_DIGITS] if uuid else ""


@dataclass(frozen=True, slots=True, order=True)
class CommittedVersion:
    """A version as a certain transaction made it."""

    version: int
    id: str


@dataclass(frozen=True, slots=True)
class Lineage:
    """What is known of the transactions of a version and of the versions below it."""

    version: int
    """The version, which is known first."""
    since: int
    """The oldest version from which on all Restores are known; above `version` if nothing is known."""
    ids: tuple[str, ...] = ()
    """The ids of the newest transactions, up to the transaction of `version`."""
    restores: Restores = ()
    """The Restores: all of them if there is no segment or it was read, otherwise the Restores above it."""
    segment: CommittedVersion | None = None
    """The segment with what is below; None if there is none, or it was read."""
    segments: tuple[CommittedVersion, ...] = ()
    """The segments below, once one was read."""
    keyed: bool = False
    """Whether a commit under a key is among them, whose key has records."""

    @classmethod
    def stated_by(cls, transaction: Transaction, version: int) -> Self | None:
        """Return the lineage of the version below a commit, as the commit states it; None if it doesn't."""
        text = (transaction.transaction_properties or {}).get(LINEAGE)
        try:
            fields = json.loads(text) if text else None
            found = None if fields is None else cls._parse(fields)
        except UNREADABLE:
            return None  # written by another client
        return found if found is not None and found.version == version - 1 else None

    @classmethod
    def nothing(cls, version: int) -> Self:
        """Return a lineage of which nothing is known."""
        return cls(version, version + 1)

    @property
    def first(self) -> int:
        """The version of the first id."""
        return self.version - len(self.ids) + 1

    def id_at(self, version: int) -> str | None:
        """Return the id at a version; None if it isn't among the newest ones."""
        return self.ids[version - self.first] or None if self.first <= version <= self.version else None

    def keeps(self, version: int) -> bool | None:
        """Return whether this version descends from an older one, so that its rows are in the table.

        None if that isn't known: a Restore that isn't known may have undone it.
        """
        top = self.version
        for made, restored in sorted(self.restores, reverse=True):
            if made > top:
                continue  # this restore was undone by a later one
            if version >= made:
                break
            top = restored
        if version > top:
            return False
        return True if self.since <= version + 1 else None

    def then(self, newer: Sequence[_ReadCommit]) -> Self:
        """Return the lineage of a later version, by the transactions in between, newest first."""
        if not newer:
            return self
        return replace(
            self,
            version=newer[0].version,
            ids=(*self.ids, *(commit.id for commit in reversed(newer))),
            restores=(*self.restores, *(commit.restore for commit in reversed(newer) if commit.restore)),
            keyed=self.keyed or any(commit.keyed for commit in newer),
        )

    def onto(self, below: Lineage, point: CommittedVersion) -> Self:
        """Return this lineage extended by the segment at a point below."""
        return replace(
            self,
            since=below.since,
            ids=tuple(self.id_at(version) or "" for version in range(point.version + 1, self.version + 1)),
            restores=(*below.restores, *(restore for restore in self.restores if restore[0] > point.version)),
            segment=None,
            segments=(*below.segments, point),
            keyed=self.keyed or below.keyed,
        )

    def text(self) -> str:
        """Return it as the property of the commit above, or as a segment."""
        ids = "".join(id_ or "-" * _DIGITS for id_ in self.ids)
        fields: dict[str, Any] = {"version": self.version, "since": self.since, "ids": ids}
        if self.restores:
            fields["restores"] = self.restores
        if self.segment is not None:
            fields["segment"] = (self.segment.version, self.segment.id)
        if self.segments:
            fields["segments"] = [(point.version, point.id) for point in self.segments]
        if self.keyed:
            fields["keyed"] = 1
        return json.dumps(fields, separators=(",", ":"))

    @classmethod
    def _parse(cls, fields: Mapping[str, Any]) -> Self:
        text = str(fields["ids"])
        ids = tuple(text[at : at + _DIGITS].strip("-") for at in range(0, len(text), _DIGITS))
        segment = fields.get("segment")
        return cls(
            int(fields["version"]),
            int(fields["since"]),
            ids,
            tuple((int(made), int(restored)) for made, restored in fields.get("restores", ())),
            None if segment is None else CommittedVersion(int(segment[0]), str(segment[1])),
            tuple(CommittedVersion(int(version), str(id_)) for version, id_ in fields.get("segments", ())),
            bool(fields.get("keyed")),
        )


@dataclass(frozen=True, slots=True)
class _ReadCommit:
    """What a lineage needs of a transaction that was read."""

    version: int
    id: str
    restore: tuple[int, int] | None
    keyed: bool


@dataclass(frozen=True, slots=True)
class LineageSegments:
    """The segments in a folder."""

    files: TableFiles
    folder: str
    listed: Mapping[CommittedVersion, str] = field(default_factory=dict)
    """The path of each segment, as listed; of two segments at one point, the settled segment."""
    settled: frozenset[CommittedVersion] = frozenset()
    """The points up to which a clean-up has settled all records."""
    _read: dict[CommittedVersion, Lineage | None] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def among(cls, files: TableFiles, folder: str, listed: Sequence[StoredFile]) -> Self:
        """Return the segments among the listed files of a folder."""
        paths: dict[CommittedVersion, str] = {}
        settled = set()
        for path in sorted(file.path for file in listed):  # sorted: settled segments come last
            if name := _SEGMENT.fullmatch(path.rpartition("/")[2]):
                point = CommittedVersion(int(name[2]), name[3])
                paths[point] = path
                if name[1] == "settled":
                    settled.add(point)
        return cls(files, folder, paths, frozenset(settled))

    def at(self, point: CommittedVersion) -> Lineage | None:
        """Return a lineage that refers to the segment of a point; None if there is none, or it is damaged."""
        found = self.read(point) if point in self.listed else None
        return None if found is None else Lineage(point.version, found.since, (point.id,), segment=point)

    def id_at(self, lineage: Lineage, version: int) -> str | None:
        """Return the id at a version of a lineage that was resolved for it; None if it isn't known."""
        if version >= lineage.first:
            return lineage.id_at(version)
        point = next((segment for segment in lineage.segments if segment.version >= version), None)
        segment = None if point is None else self.read(point)
        return None if segment is None else segment.id_at(version)

    def is_settled(self, lineage: Lineage, version: int) -> bool:
        """Return whether a clean-up has settled all records up to a version of a lineage, or a later one."""
        return any(
            point.version >= version
            and (point in lineage.segments or lineage.id_at(point.version) == point.id)
            for point in self.settled
        )

    def read(self, point: CommittedVersion) -> Lineage | None:
        """Return a segment; None if it was removed or is damaged."""
        if point not in self._read:
            self._read[point] = self._read_file(point)
        return self._read[point]

    def _read_file(self, point: CommittedVersion) -> Lineage | None:
        path = self.listed.get(point) or self._path("lineage", point)
        content = self.files.read(path)
        try:
            found = None if content is None else Lineage._parse(json.loads(content))
        except UNREADABLE:
            return None
        if found is None or (found.version, found.id_at(point.version)) != (point.version, point.id):
            return None
        return found

    def store(self, lineage: Lineage, *, settled: bool = False) -> CommittedVersion | None:
        """Store a lineage that was resolved; return its point, None if its last id is unknown."""
        last = lineage.id_at(lineage.version)
        if last is None:
            return None
        point = CommittedVersion(lineage.version, last)
        self.files.put(self._path("settled" if settled else "lineage", point), lineage.text().encode())
        return point

    def resolved(self, lineage: Lineage) -> Lineage:
        """Return a lineage extended by the newest segment below; lineage below a lost segment is unknown."""
        proven = [point for point in self.listed if lineage.id_at(point.version) == point.id]
        stated = [] if lineage.segment is None else [lineage.segment]
        found: list[tuple[Lineage, CommittedVersion]] = []
        for point in sorted({*proven, *stated}, reverse=True):
            below = self.read(point)
            if below is not None:
                found.append((below, point))
                if below.since <= lineage.since:
                    break  # this segment continues the lineage without a gap
        if found:
            return lineage.onto(*min(found, key=lambda entry: entry[0].since))
        if lineage.segment is None:
            return lineage
        return replace(lineage, since=max(lineage.since, lineage.segment.version + 1), segment=None)

    def _path(self, kind: str, point: CommittedVersion) -> str:
        return f"{self.folder}/{kind}-{point.version}-{point.id}.json"


def read_lineage(
    dataset: LanceDataset,
    is_keyed: Callable[[Transaction], bool],
    down_to: int = 1,
    at_most: int | None = None,
    segments: LineageSegments | None = None,
) -> tuple[Lineage, dict[int, Transaction]]:
    """Read transactions downwards until all Restores since a version are known.

    Usually that is after the first one, a commit of this package.

    Args:
        dataset: the dataset, opened at the version to begin with.
        is_keyed: returns whether a transaction was committed under a key.
        down_to: the version.
        at_most: the number of transactions to read; None doesn't limit it.
        segments: the listed segments; reading ends at a version that has one, which lists the rest.

    Returns:
        The lineage, and the transactions that were read, by version.
    """
    read: list[_ReadCommit] = []
    found: dict[int, Transaction] = {}
    base, above = Lineage.nothing(dataset.version), 0
    for version, transaction in transactions(dataset, 0):
        if transaction is None or len(read) == at_most:
            break  # versions that were cleaned up may include a Restore
        found[version] = transaction
        id_ = transaction_id(transaction.uuid)
        restored = restored_version(transaction)
        restore = None if restored is None else (version, restored)
        read.append(_ReadCommit(version, id_, restore, is_keyed(transaction)))
        stated = Lineage.stated_by(transaction, version) or Lineage.nothing(version - 1)
        if stated.since < base.since:
            base, above = stated, len(read)
        stored = None if segments is None else segments.at(CommittedVersion(version, id_))
        if stored is not None and stored.since < base.since:
            base, above = stored, len(read) - 1
        if base.since <= down_to:
            break
    return base.then(read[:above]), found
