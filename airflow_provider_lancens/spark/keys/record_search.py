"""Find the commit of an idempotency key by its records.

Two listings for a key without records, whatever the table's age: that of the key, and that of the index.
For a key with records also the transaction of each version that they name, and the Restores since.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, TypeAlias

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.storage.manifests import Manifests
from airflow_provider_lancens.spark.keys.expired_keys import ExpiredKeys
from airflow_provider_lancens.spark.keys.key_index import KeyIndex
from airflow_provider_lancens.spark.keys.key_migration import migrate_keys
from airflow_provider_lancens.spark.keys.key_records import (
    KeyRecord,
    commit_of,
    confirm,
    digest,
    folder_of,
    records_in,
)
from airflow_provider_lancens.spark.keys.keyed_commit import KeyedCommit
from airflow_provider_lancens.spark.keys.restored_versions import RestoredVersions
from airflow_provider_lancens.spark.table.history import read_transaction

if TYPE_CHECKING:
    from lance import LanceDataset

    from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable


@dataclass(frozen=True, slots=True)
class AttemptOutcome:
    """What is known of an attempt."""

    commit: KeyedCommit | None
    """The commit that it made; None if it failed, or that is unknown."""
    is_known: bool = True
    """Whether that could be determined."""


def determine_outcome(manifests: Manifests, latest: LanceDataset, record: KeyRecord) -> AttemptOutcome:
    """Determine whether an attempt was committed as a version up to the latest one.

    Args:
        manifests: the manifests of the dataset.
        latest: the dataset, opened at its latest version.
        record: the attempt; its version is at most the latest.
    """
    if record.version == latest.version or manifests.find(record.version) is not None:
        transaction = read_transaction(latest, record.version)
        if transaction is not None:
            made = transaction.uuid == record.uuid
            return AttemptOutcome(KeyedCommit.of(record.version, transaction) if made else None)
    if record.confirmed:
        return AttemptOutcome(commit_of(manifests, record))
    return AttemptOutcome(None, is_known=False)


ListedRecords: TypeAlias = tuple[list[KeyRecord], KeyIndex]
"""The records of a key, and the index."""


def list_records(files: Manifests, key: str) -> ListedRecords:
    """List the records of a key, then the index: an expired key is in it before its records are removed."""
    found = records_in(files.below(folder_of(digest(key))))
    return found, KeyIndex.of(files)


@dataclass(frozen=True, slots=True)
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
            migrate_keys(target, latest, index)
            found, index = list_records(files, key)
        # Those above the latest version are in progress, or their driver ended: a later commit shows which.
        attempts = [record for record in found if record.version <= latest.version]
        return cls(target, latest, key, files, attempts, index)

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
        restores: RestoredVersions | None = None
        attempts = [
            one
            for one in self.attempts
            if one.version > above and not (one.uuid == own and one.version in disproved)
        ]
        for record in reversed(attempts):
            outcome = determine_outcome(self.files, self.latest, record)
            if not outcome.is_known:
                unknown.append(record)
            elif outcome.commit is not None:
                restores = restores or self.index.checkpoint.known(self.latest, attempts[0].version)
                if restores.keep(record.version, self.latest.version):
                    if not record.confirmed and record.uuid != own:
                        confirm(self.files, record)
                    return outcome.commit
        if unknown:
            raise self._unknown(unknown[0])
        return None

    def unknown(self) -> list[KeyRecord]:
        """Return the attempts of which it cannot be determined whether they were committed."""
        outcomes = ((one, determine_outcome(self.files, self.latest, one)) for one in self.attempts)
        return [record for record, outcome in outcomes if not outcome.is_known]

    def check_not_expired(self) -> None:
        """Check that the key didn't expire, once it was looked up and not found.

        Raises:
            InvalidInputError: (13) it was committed, and has expired.
        """
        if self.index.has_expired and ExpiredKeys(self.files).contain(digest(self.key)):
            raise spec_errors.InvalidInputError(
                f"table {self.target.id}: idempotency key {self.key!r} was committed, and has expired "
                "since by keep_keys of a clean-up; nothing was written. on_existing_key='write_again' writes "
                "regardless of that"
            )

    def _unknown(self, record: KeyRecord) -> spec_errors.InvalidTableStateError:
        return spec_errors.InvalidTableStateError(
            f"table {self.target.id}: cannot determine whether idempotency key {self.key!r} was committed: "
            f"an earlier run was interrupted while it committed version {record.version}, which another "
            "client has cleaned up since; nothing was written. If its rows are in the table, call "
            "confirm_write; otherwise use on_existing_key='write_again'"
        )
