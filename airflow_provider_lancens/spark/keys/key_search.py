"""Find the commits of a key, whose rows are in the table: which of the recorded attempts were made.

Two listings for a key without records, whatever the table's age; for others also the newest transaction,
which states the lineage of its version, and the record. Records that are lost are written again from the
versions that are kept.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Self, TypeAlias

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.storage.manifests import Manifests
from airflow_provider_lancens.spark.keys.commit_lineage import (
    MANY_READ,
    CommittedVersion,
    Lineage,
    LineageSegments,
    read_lineage,
    transaction_id,
)
from airflow_provider_lancens.spark.keys.key_records import (
    ExpiredKeys,
    KeyIndex,
    KeyRecord,
    commit_of,
    confirm,
    confirm_at,
    digest,
    folder_of,
    key_and_commit_of,
    mark_complete,
    records_in,
    records_of_versions,
    write_record,
)
from airflow_provider_lancens.spark.keys.keyed_commit import KeyedCommit, has_records, is_unique, key_of
from airflow_provider_lancens.spark.table.history import (
    added_files,
    data_files,
    read_transaction,
    restored_version,
    rewritten_files,
    transactions,
)
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable

if TYPE_CHECKING:
    from lance import LanceDataset, Transaction

_log = logging.getLogger(__name__)


_COMPACTIONS = 8
"""The newest transactions that are read to see whether a compaction has moved the rows of a commit."""


@dataclass(frozen=True, slots=True)
class TableHistory:
    """What shows whether an attempt is part of a table's history."""

    manifests: Manifests
    latest: LanceDataset
    """The dataset, opened at its latest version."""
    segments: LineageSegments
    lineage: Lineage
    """The lineage of the latest version, with its segments read if they are needed."""
    transactions: Mapping[int, Transaction]
    """The transactions that were read for it, by version."""

    @classmethod
    def of(cls, manifests: Manifests, latest: LanceDataset, index: KeyIndex, since: int = 1) -> Self:
        """Read what is needed to judge attempts to commit versions from this one on."""
        segments = index.segments
        read, found = read_lineage(latest, has_records, since, segments=segments)
        lineage = read if since >= read.first else segments.resolved(read)
        if len(found) >= MANY_READ:
            segments.store(segments.resolved(read))
        return cls(manifests, latest, segments, lineage, found)

    def is_made(self, record: KeyRecord) -> bool | None:
        """Return whether an attempt made a version of the history, also a version that was undone since.

        None if that isn't known.
        """
        point = CommittedVersion(record.version, transaction_id(record.uuid))
        known = self.segments.id_at(self.lineage, record.version)
        if known is not None:
            return known == point.id
        if record.confirmed and self.segments.is_settled(self.lineage, record.version):
            return True
        return self._is_at(point)

    def has_rows(self, record: KeyRecord) -> bool | None:
        """Return whether the rows of an attempt are in the table; None if that isn't known.

        True even if the rows were changed later; False if a Restore of an older version removed them.
        """
        made = self.is_made(record)
        kept = None if made is None else made and self.lineage.keeps(record.version)
        if kept is not None:
            return kept
        for point in reversed(record.confirmed_at):
            if self._is_at(point) and (kept := self.lineage.keeps(point.version)) is not None:
                return kept
        return True if self._has_files(record) else None

    @property
    def newest(self) -> CommittedVersion | None:
        """The latest version; None if it can't be distinguished from others of this number."""
        id_ = self.lineage.id_at(self.lineage.version)
        return None if id_ is None else CommittedVersion(self.lineage.version, id_)

    def _is_at(self, point: CommittedVersion) -> bool | None:
        """Return whether a transaction made a version; None if that isn't known."""
        if point.version > self.lineage.version:
            return False
        known = self.segments.id_at(self.lineage, point.version)
        if known is None and self.manifests.find(point.version) is not None:
            # The lineage starts above the point, since a version in between was cleaned up.
            newest = self.latest.checkout_version(self.lineage.version)  # a dataset for this thread alone
            transaction = read_transaction(newest, point.version)
            known = None if transaction is None else transaction_id(transaction.uuid)
        return None if known is None else known == point.id

    def _has_files(self, record: KeyRecord) -> bool:
        described = commit_of(self.manifests, record)
        if described is None or not described.files:
            return False
        if not {file.path for file in data_files(self.latest)}.isdisjoint(described.files):
            return True
        # A compaction by others may have moved its rows.
        for version, transaction in itertools.islice(transactions(self.latest, record.version), _COMPACTIONS):
            if transaction is None:
                break
            if not set(rewritten_files(transaction)).isdisjoint(described.files):
                return self.lineage.keeps(version) is True
        return False


ListedRecords: TypeAlias = tuple[list[KeyRecord], KeyIndex]
"""The records of a key, and the index."""


def list_records(files: Manifests, key: str) -> ListedRecords:
    """List the records of a key, then the index: an expired key is in it before its records are removed."""
    found = records_in(files.below(folder_of(digest(key))))
    return found, KeyIndex.of(files)


@dataclass(frozen=True)
class RecordSearch:
    """The records of one key, as listed for one version of the table's dataset."""

    target: ResolvedTable
    latest: LanceDataset
    """The dataset, opened at its latest version before the records were listed."""
    key: str
    files: Manifests
    attempts: Sequence[KeyRecord]
    """The attempts to commit versions up to the latest, by version."""
    index: KeyIndex

    @classmethod
    def of(
        cls, target: ResolvedTable, latest: LanceDataset, key: str, listed: ListedRecords | None = None
    ) -> Self:
        """List the records of a key, once all keys of the table have records.

        Args:
            target: the table.
            latest: its dataset, opened at its latest version.
            key: the key.
            listed: its records, as listed since that version was known to be the latest; None lists them.
        """
        files = target.dataset.manifests
        found, index = listed or list_records(files, key)
        if not index.is_complete:
            recover_keys(target, latest, index)
            found, index = list_records(files, key)
        # Attempts above the latest version are in progress or abandoned; a later commit shows which.
        attempts = [record for record in found if record.version <= latest.version]
        return cls(target, latest, key, files, attempts, index)

    @cached_property
    def _history(self) -> TableHistory:
        return TableHistory.of(self.files, self.latest, self.index, self.attempts[0].version)

    def commit(self, *, disproved: Sequence[int] = (), own: str = "", above: int = 0) -> KeyedCommit | None:
        """Return the newest commit under the key whose rows are in the table, or None.

        Args:
            disproved: versions at which the caller's own attempts are known to have failed.
            own: the UUID of the caller's attempts.
            above: commits up to this version are ignored.

        Raises:
            InvalidTableStateError: (19) it cannot be determined whether an attempt was committed.
        """
        unknown: list[KeyRecord] = []
        for record in reversed(self.attempts):
            if record.version <= above or (record.uuid == own and record.version in disproved):
                continue
            has_rows = self._history.has_rows(record)
            if has_rows is None:
                unknown.append(record)
            elif has_rows:
                if not record.confirmed and record.uuid != own:
                    confirm(self.files, record)
                return self._described(record)
        if unknown:
            raise self._unknown(unknown[0])
        return None

    def commits(self) -> Iterator[KeyedCommit]:
        """Yield all commits under the key whose rows are in the table, newest first.

        Raises:
            InvalidTableStateError: (19) it cannot be determined whether the next attempt was committed.
        """
        for record in reversed(self.attempts):
            has_rows = self._history.has_rows(record)
            if has_rows is None:
                raise self._unknown(record)
            if has_rows:
                yield self._described(record)

    def confirm(self) -> bool:
        """Record that the rows are in the table, as a user has confirmed, if the attempts don't show it.

        Returns:
            Whether there was such an attempt.
        """
        unknown = [attempt for attempt in self.attempts if self._history.has_rows(attempt) is None]
        if not unknown or (newest := self._history.newest) is None:
            return False
        for record in unknown:
            confirm_at(self.files, record, newest)
        return True

    @property
    def may_be_lost(self) -> bool:
        """Whether the key has no record, and records were lost, maybe also its own."""
        return self.index.has_lost and not self.attempts

    def check_not_lost(self) -> None:
        """Check that the record of the key, which has no commit, wasn't lost and hasn't expired.

        Raises:
            InvalidInputError: (13) it was committed, and has expired.
            InvalidTableStateError: (19) records were lost, maybe also the record of this key.
        """
        if self._has_expired:
            raise spec_errors.InvalidInputError(
                f"table {self.target.id}: idempotency key {self.key!r} was committed, and has expired "
                "since by keys_older_than of a clean-up; nothing was written. on_existing_key='write_again' "
                "writes regardless of that"
            )
        if self.may_be_lost:
            raise spec_errors.InvalidTableStateError(
                f"table {self.target.id}: cannot determine whether idempotency key {self.key!r} was "
                "committed: the records of keys beside the data, in _lancens, were removed, and so were old "
                "versions; nothing was written. Use on_existing_key='write_again' for a key whose rows "
                "aren't there, or call Table.accept_lost_keys: a key without records then counts as new"
            )

    def check_has_all(self, oldest: KeyedCommit) -> None:
        """Check that the key, of which a commit was found, has no older commit whose record is gone.

        Raises:
            InvalidInputError: (13) it was also committed before, and has expired since.
            InvalidTableStateError: (19) records were lost, maybe also one of this key.
        """
        if self._has_expired:
            raise spec_errors.InvalidInputError(
                f"table {self.target.id}: on_existing_key: idempotency key {self.key!r} was also committed "
                f"before version {oldest.version}, and has expired since by keys_older_than of a clean-up: "
                "its older rows can't be identified, and would be left; nothing was written. Use 'skip' to "
                "keep what the key has written, 'write_again' to add the rows once more, or another key"
            )
        if self.index.has_lost:
            raise spec_errors.InvalidTableStateError(
                f"table {self.target.id}: cannot determine whether idempotency key {self.key!r} was also "
                f"committed before version {oldest.version}: the records of keys beside the data, in "
                "_lancens, were removed, and so were old versions; nothing was written. If the key has no "
                "older rows, call Table.accept_lost_keys; the run then replaces the known ones. Otherwise "
                "use on_existing_key='skip' to keep what the key has written"
            )

    @cached_property
    def _has_expired(self) -> bool:
        return self.index.has_expired and ExpiredKeys(self.files).contain(digest(self.key))

    def _described(self, record: KeyRecord) -> KeyedCommit:
        """Return the commit of a record, without counts if they are lost."""
        transaction = self._history.transactions.get(record.version)
        if transaction is None:
            if (described := commit_of(self.files, record)) is not None:
                return described
            transaction = read_transaction(self.latest, record.version)
        if transaction is None or transaction.uuid != record.uuid:
            return KeyedCommit(record.version, record.uuid)
        return KeyedCommit.of(record.version, transaction)

    def _unknown(self, record: KeyRecord) -> spec_errors.InvalidTableStateError:
        return spec_errors.InvalidTableStateError(
            f"table {self.target.id}: cannot determine whether idempotency key {self.key!r} was committed: "
            f"an earlier run tried to commit version {record.version}, which is gone, and no commit since "
            "shows whether it was made, or was undone; another client has cleaned up versions, or lost "
            "them. Nothing was written. If its rows are in the table, call Table.confirm_write; otherwise "
            "use on_existing_key='write_again'"
        )


_THREADS = 16


def recorded_commits(
    manifests: Manifests, latest: LanceDataset, versions: Collection[int]
) -> dict[int, tuple[str, KeyedCommit]]:
    """Return the commits of versions that were cleaned up, each with its key, as far as records show them.

    All records of the table are listed.

    Args:
        manifests: the files at the table's location.
        latest: the dataset, opened at its latest version.
        versions: the versions; at least one.
    """
    records = records_of_versions(manifests, versions)
    history = TableHistory.of(manifests, latest, KeyIndex.of(manifests), min(versions)) if records else None
    found: dict[int, tuple[str, KeyedCommit]] = {}
    for record in records:
        made = False if history is None else history.is_made(record)
        # If other clients' clean-ups leave that unknown, confirmed attempts count.
        if (made or (made is None and record.confirmed)) and (
            commit := key_and_commit_of(manifests, record)
        ) is not None:
            found[record.version] = commit
    return found


def recover_keys(target: ResolvedTable, latest: LanceDataset, index: KeyIndex) -> None:
    """Write the records of all keys in a table's kept versions.

    If the history shows that there were records, they were lost: which keys the versions had that are gone is
    not known.

    Args:
        target: the table.
        latest: its dataset, opened at its latest version.
        index: the index of its keys.
    """
    if latest.version > 1:
        _log.info(
            "Table %s: recording the keys of its %d versions, once, so that later writes need not read "
            "its history",
            target.id,
            latest.version,
        )
    history = _KeptVersions()
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="lance-keys") as pool:
        written = [
            pool.submit(_write, index, record, key, commit) for record, key, commit in _kept(latest, history)
        ]
    for future in written:
        future.result()
    if history.had_records and history.is_incomplete:
        _log.warning(
            "Table %s: the records of its keys were lost, and versions were cleaned up; until "
            "accept_lost_keys is called, writes under keys without records are refused",
            target.id,
        )
        index.mark_lost()
    else:
        index.segments.store(history.lineage, settled=True)
    mark_complete(index.files)


@dataclass
class _KeptVersions:
    """What a walk through the kept versions shows."""

    ids: list[str] = field(default_factory=list)
    """The ids of the transactions, newest first, down to the first transaction that isn't kept."""
    newest: int = 0
    restores: list[tuple[int, int]] = field(default_factory=list)
    is_incomplete: bool = False
    had_records: bool = False

    def add(self, version: int, transaction: Transaction | None) -> None:
        """Add what the next older version shows."""
        self.newest = max(self.newest, version)
        if transaction is None:
            self.is_incomplete = True
            return
        if not self.is_incomplete:
            self.ids.append(transaction_id(transaction.uuid))
        if (restored := restored_version(transaction)) is not None:
            self.restores.append((version, restored))
        stated = Lineage.stated_by(transaction, version)
        self.had_records |= has_records(transaction) or (stated is not None and stated.keyed)

    @property
    def lineage(self) -> Lineage:
        """The lineage of these versions; a version that was cleaned up counts as no Restore."""
        return Lineage(self.newest, 1, tuple(reversed(self.ids)), tuple(sorted(self.restores)))


def _kept(latest: LanceDataset, history: _KeptVersions) -> Iterator[tuple[KeyRecord, str, KeyedCommit]]:
    """Yield the commits of the kept versions that have a key, and collect what else the versions show."""
    for version, transaction in transactions(latest, 0):
        history.add(version, transaction)
        if transaction is None:
            continue
        key = key_of(transaction)
        if key and not is_unique(key):
            yield (
                KeyRecord(version, transaction.uuid, digest(key)),
                key,
                replace(
                    KeyedCommit.of(version, transaction), files=tuple(added_files(transaction.operation))
                ),
            )


def _write(index: KeyIndex, record: KeyRecord, key: str, commit: KeyedCommit) -> None:
    write_record(index.files, record, key, commit)
    confirm(index.files, record)
