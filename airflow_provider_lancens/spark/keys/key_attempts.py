"""The attempts of one driver to commit under a key: each is announced before its version may be made.

Once a commit is known to be made, its record is confirmed, and the records of the other attempts are removed.
The records of a driver that ended before are left to a rerun or a clean-up. A write without a key of its own
has no records.

Two drivers may commit under one key at once: of two live ones of one execution, one finds the other's commit;
of two executions, one is refused, unless its policy takes the other's commit for its own
(`KeyedWrite.is_done_by`), or is to write again.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.storage.table_files import TableFiles
from airflow_provider_lancens.spark.keys.commit_lineage import LONG, MAX_READ, Lineage, read_lineage
from airflow_provider_lancens.spark.keys.key_lookup import KeyedWrite
from airflow_provider_lancens.spark.keys.key_records import (
    KeyIndex,
    KeyRecord,
    confirm,
    digest,
    mark_complete,
    retract,
    write_record,
)
from airflow_provider_lancens.spark.keys.key_search import RecordSearch
from airflow_provider_lancens.spark.keys.keyed_commit import Counts, KeyedCommit, has_records, is_unique
from airflow_provider_lancens.spark.table.history import read_transaction
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable

if TYPE_CHECKING:
    from lance import LanceDataset


_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Prefetch:
    """What is done in a thread while the rows are written, and while the write ends."""

    pool: ThreadPoolExecutor
    latest: LanceDataset | None
    """The dataset as it was opened to look up the key; it is moved to its newest version."""
    version: int
    """The version at which it was opened; 0 if there was none."""
    lineage: Future[Lineage]
    """The lineage of this version, which the commit that follows it states."""
    conclusions: list[Future[None]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class KeyAttempts:
    """The attempts of one write."""

    target: ResolvedTable
    write: KeyedWrite
    uuid: str = field(default_factory=lambda: str(uuid.uuid4()))
    """The UUID of its transaction."""
    tried: list[int] = field(default_factory=list)
    """The versions that it tried to create."""
    _prefetch: _Prefetch | None = None

    @classmethod
    @contextmanager
    def started(cls, target: ResolvedTable, write: KeyedWrite, latest: LanceDataset | None) -> Iterator[Self]:
        """Read what the attempts need while the rows are written, to save round trips to the storage.

        Nothing is recorded until an attempt is announced.

        What the first attempt needs of the newest version is read while the rows are written, and the commit
        is concluded while the caller ends what it began within the block.

        Args:
            target: the table.
            write: what identifies the write.
            latest: the dataset as it was opened to look up the key, which nothing else uses any more.
        """
        version = 0 if latest is None else latest.version
        with ThreadPoolExecutor(1, thread_name_prefix="lance-keys") as pool:
            started = _Prefetch(pool, latest, version, pool.submit(_lineage, target, latest))
            yield cls(target, write, _prefetch=started)
            for conclusion in started.conclusions:
                conclusion.result()

    def opened(self) -> LanceDataset | None:
        """Return the dataset that `started` was given, to be moved to its newest version."""
        if self._prefetch is None:
            return None
        wait([self._prefetch.lineage])  # the dataset must not be moved while the thread reads it
        return self._prefetch.latest

    def find(self, latest: LanceDataset | None, after: int) -> KeyedCommit | None:
        """Return a commit under the key, of this driver or of another, that was made above a version.

        Args:
            latest: the dataset at its latest version; None if there is none yet.
            after: the version up to which there was none.
        """
        if latest is None or latest.version <= after:
            return None
        if is_unique(self.write.key):
            return self._own(latest)
        disproved = [version for version in self.tried if version <= after]
        search = RecordSearch.of(self.target, latest, self.write.key)
        found = search.commit(disproved=disproved, own=self.uuid, above=self.write.above)
        return None if found is None or self.write.ignores(found) else found

    def next_commit(
        self,
        version: int,
        counts: Counts,
        latest: LanceDataset | None = None,
        *,
        kind: str = "",
        files: Sequence[str] = (),
    ) -> KeyedCommit:
        """Return the commit that the next attempt is to make, as exactly this version, which must not exist.

        Args:
            version: the version.
            counts: what it writes.
            latest: the dataset at the version before; None if there is none.
            kind: what it does, see `TableChange.kind`.
            files: data files that it adds.
        """
        started = self._prefetch
        if started is not None and started.version == version - 1:
            lineage = started.lineage.result()
        else:
            lineage = _lineage(self.target, latest)
        write = self.write
        self.tried.append(version)
        return KeyedCommit(
            version,
            self.uuid,
            counts,
            write.fingerprint,
            write.execution_id,
            kind=kind,
            files=tuple(files),
            lineage=lineage,
        )

    @contextmanager
    def announcing(self, commit: KeyedCommit) -> Iterator[Future[None]]:
        """Announce a commit in a thread, for the duration of the block, in which it may be prepared.

        It may be made once the future has a result, and never if that is an error.
        """
        with ThreadPoolExecutor(1, thread_name_prefix="lance-keys") as pool:
            yield pool.submit(self.announce, commit)

    def announce(self, commit: KeyedCommit) -> None:
        """Record that a commit is about to be made."""
        if not is_unique(self.write.key):
            files = self.target.dataset.manifests
            write_record(files, self._record(commit.version), self.write.key, commit)

    def conclude(self, commit: KeyedCommit) -> None:
        """Confirm a commit of this driver, in the thread of `started` if it was called.

        If that fails, a rerun or a clean-up does it.
        """
        if self._prefetch is None:
            self._conclude(commit)
        else:
            self._prefetch.conclusions.append(self._prefetch.pool.submit(self._conclude, commit))

    def _conclude(self, commit: KeyedCommit) -> None:
        try:
            self._confirm(commit)
        except spec_errors.LanceNamespaceError as error:
            _log.warning(
                "Table %s: version %d is committed, but its idempotency key could not be confirmed; a "
                "rerun does that as long as the version is kept: %s",
                self.target.id,
                commit.version,
                error,
            )

    def _confirm(self, commit: KeyedCommit) -> None:
        files = self.target.dataset.manifests
        if commit.version == 1:
            mark_complete(files)
        if is_unique(self.write.key):
            return
        confirm(files, self._record(commit.version))
        if failed := [version for version in self.tried if version != commit.version]:
            retract(files, map(self._record, failed))

    def _record(self, version: int) -> KeyRecord:
        return KeyRecord(version, self.uuid, digest(self.write.key))

    def _own(self, latest: LanceDataset) -> KeyedCommit | None:
        for version in self.tried:
            transaction = read_transaction(latest, version) if version <= latest.version else None
            if transaction is not None and transaction.uuid == self.uuid:
                return KeyedCommit.of(version, transaction)
        return None


def _lineage(target: ResolvedTable, latest: LanceDataset | None) -> Lineage:
    # A table without versions has an empty lineage, which is complete.
    return Lineage(0, 1) if latest is None else lineage_below(target.dataset.manifests, latest)


def lineage_below(files: TableFiles, latest: LanceDataset) -> Lineage:
    """Return the lineage that the commit after the latest version states.

    Usually the latest version is such a commit, and nothing else is read.

    Args:
        files: the files at the table's location.
        latest: the dataset, opened at its latest version.
    """
    try:
        lineage, _ = read_lineage(latest, has_records, at_most=MAX_READ)
        if lineage.since > 1 and not lineage.keyed:
            # Removed versions may have committed keys; a later loss of their records must be noticed.
            index = KeyIndex.of(files)
            lineage = replace(lineage, keyed=index.is_complete)
        return _shortened(files, lineage) if len(lineage.ids) >= LONG else lineage
    except (OSError, RuntimeError, TypeError, ValueError):  # another client's transaction, which is invalid
        return Lineage.nothing(latest.version)


def _shortened(files: TableFiles, lineage: Lineage) -> Lineage:
    """Move the ids of a lineage to a segment; if that fails, the next commit tries again."""
    try:
        segments = KeyIndex.of(files).segments
        full = segments.resolved(lineage)
        point = segments.store(full)
    except spec_errors.LanceNamespaceError as error:
        _log.warning("The history of keys could not be stored; a later commit does that: %s", error)
        return lineage
    if point is None:
        return lineage
    return Lineage(lineage.version, full.since, segment=point, keyed=lineage.keyed)
