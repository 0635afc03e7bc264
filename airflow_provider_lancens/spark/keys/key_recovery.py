"""Write the key records that an adopted or copied dataset lacks, or that were lost, from its kept versions.

The recovery may be interrupted and repeated, also by several drivers at once: all write the same records.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from airflow_provider_lancens.spark.keys.commit_lineage import Lineage, transaction_id
from airflow_provider_lancens.spark.keys.key_index import KeyIndex, mark_complete
from airflow_provider_lancens.spark.keys.key_records import (
    KeyRecord,
    confirm,
    digest,
    has_records,
    is_unique,
    write_record,
)
from airflow_provider_lancens.spark.keys.keyed_commit import KeyedCommit, key_of
from airflow_provider_lancens.spark.table.history import added_files, restored_version, transactions

if TYPE_CHECKING:
    from lance import LanceDataset, Transaction

    from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable

_log = logging.getLogger(__name__)

_THREADS = 16


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
    """The ids of the transactions down to the first one that isn't kept, newest first."""
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
        """Its lineage; a version that was cleaned up before keys had records counts as no Restore."""
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
