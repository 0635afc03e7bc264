"""The attempts of one driver to commit under a key: each is announced before it and concluded after it.

Two drivers may commit the same write at once: of two live ones, one finds the other's commit.
"""

from __future__ import annotations

import logging
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lance_namespace.errors import LanceNamespaceError

from airflow_provider_lancens.spark.keys.key_index import KeyIndex, checkpoint_below, mark_complete
from airflow_provider_lancens.spark.keys.key_records import (
    KeyRecord,
    confirm,
    digest,
    is_unique,
    retract,
    write_record,
)
from airflow_provider_lancens.spark.keys.keyed_commit import Counts, KeyedCommit, KeyedWrite
from airflow_provider_lancens.spark.keys.record_search import RecordSearch
from airflow_provider_lancens.spark.keys.restored_versions import MAX_BEHIND
from airflow_provider_lancens.spark.table.history import read_transaction
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable

if TYPE_CHECKING:
    from lance import LanceDataset

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class KeyAttempts:
    """The attempts of one write."""

    target: ResolvedTable
    write: KeyedWrite
    uuid: str = field(default_factory=lambda: str(uuid.uuid4()))
    """The UUID of its transaction."""
    made: list[int] = field(default_factory=list)
    """The versions that it tried to create."""

    def find(self, latest: LanceDataset | None, after: int) -> KeyedCommit | None:
        """Return a commit under the key, of this driver or of another, that was made above a version.

        Args:
            latest: the data set at its latest version; None if there is none yet.
            after: the version up to which there was none.
        """
        if latest is None or latest.version <= after:
            return None
        if is_unique(self.write.key):
            return self._own(latest)
        disproved = [version for version in self.made if version <= after]
        search = RecordSearch.of(self.target, latest, self.write.key)
        found = search.commit(disproved=disproved, own=self.uuid, above=self.write.above)
        return None if found is None or self.write.ignores(found) else found

    def announce(self, version: int, counts: Counts, latest: LanceDataset | None = None) -> KeyedCommit:
        """Record that a commit is about to create exactly this version, which must not exist yet.

        Args:
            version: the version.
            counts: what it writes.
            latest: the data set at the version before; None if there is none.

        Returns:
            The commit to make.
        """
        write = self.write
        checkpoint = 0 if latest is None else checkpoint_below(self.target.dataset.manifests, latest)
        commit = KeyedCommit(version, self.uuid, counts, write.fingerprint, write.occasion, checkpoint)
        self.made.append(version)
        if not is_unique(write.key):
            write_record(self.target.dataset.manifests, self._record(version), write.key, commit)
        return commit

    def conclude(self, latest: LanceDataset | None, commit: KeyedCommit) -> None:
        """Confirm a commit of this driver; if that fails, a rerun or a clean-up does it.

        Args:
            latest: the data set at the version before; None if there was none.
            commit: the commit.
        """
        try:
            self._confirm(commit)
            if latest is not None and commit.checkpoint is None and commit.version % MAX_BEHIND == 0:
                KeyIndex.of(self.target.dataset.manifests).checkpoint.advance(latest)
        except LanceNamespaceError as error:
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
        if failed := [version for version in self.made if version != commit.version]:
            retract(files, map(self._record, failed))

    def _record(self, version: int) -> KeyRecord:
        return KeyRecord(version, self.uuid, digest(self.write.key))

    def _own(self, latest: LanceDataset) -> KeyedCommit | None:
        for version in self.made:
            transaction = read_transaction(latest, version) if version <= latest.version else None
            if transaction is not None and transaction.uuid == self.uuid:
                return KeyedCommit.of(version, transaction)
        return None
