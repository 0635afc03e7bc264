"""Maintenance of key records by a clean-up of versions: settle open attempts, and let old keys expire.

Called before versions are removed, since the transaction of a version shows which attempt created it. The
records are listed shard by shard, so that memory doesn't grow with the table's age. Each step may be
repeated: an interrupted clean-up is finished by the next one.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from airflow_provider_lancens.namespace.storage.manifests import Manifests
from airflow_provider_lancens.namespace.storage.table_files import StoredFile
from airflow_provider_lancens.spark.keys.expired_keys import ExpiredKeys
from airflow_provider_lancens.spark.keys.key_index import KeyIndex
from airflow_provider_lancens.spark.keys.key_migration import migrate_keys
from airflow_provider_lancens.spark.keys.key_records import (
    KEYS,
    KeyRecord,
    confirm,
    records_in,
    retract,
)
from airflow_provider_lancens.spark.keys.record_search import determine_outcome

if TYPE_CHECKING:
    from lance import LanceDataset

    from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable

_log = logging.getLogger(__name__)

_THREADS = 8


def maintain_keys(target: ResolvedTable, latest: LanceDataset, before: datetime | None = None) -> int:
    """Settle all attempts up to the latest version, and let keys expire.

    Args:
        target: the table.
        latest: its dataset, opened at its latest version.
        before: keys that were committed before this time, by the storage's clock, expire; None keeps all.

    Returns:
        The number of keys that expired.

    Raises:
        LanceNamespaceError: (15, 16, 17) the storage failed; run it again to continue.
    """
    manifests = target.dataset.manifests
    index = KeyIndex.of(manifests)
    if not index.is_complete:
        migrate_keys(target, latest, index)
        index = KeyIndex.of(manifests)
    else:
        index.checkpoint.advance(latest, completely=True)
    work = _Shards(manifests, latest, index, before)
    if (few := _all_if_few(manifests)) is not None:
        return sum(work.maintain(shard, list(group)) for shard, group in itertools.groupby(few, _shard))
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="lance-keys") as pool:
        return sum(pool.map(work.maintain, manifests.folders(KEYS)))


def _all_if_few(manifests: Manifests) -> list[StoredFile] | None:
    """Return all files of keys by shard if one request lists them; None if there are more."""
    pages = manifests.all_below(KEYS)
    first = next(pages, [])
    return None if next(pages, None) else sorted(first, key=_shard)


@dataclass(frozen=True, slots=True)
class _Shards:
    manifests: Manifests
    latest: LanceDataset
    index: KeyIndex
    before: datetime | None

    def maintain(self, shard: str, listed: Iterable[StoredFile] | None = None) -> int:
        """Settle and expire the keys of a shard; return the number that expired.

        Args:
            shard: its folder.
            listed: its files; None lists them.
        """
        files = listed or (file for page in self.manifests.all_below(shard) for file in page)
        expired: list[KeyRecord] = []
        for _, group in itertools.groupby(sorted(files, key=_folder), _folder):
            found = list(group)
            records = self._settled(records_in(found))
            if self._is_old(found, records):
                expired += records
        digests = {record.digest for record in expired}
        if expired:
            # Before their records are removed: a lookup that finds no record then finds the key here.
            ExpiredKeys(self.manifests).add(shard.rpartition("/")[2], digests)
            self.index.mark_expired()
            retract(self.manifests, expired)
        return len(digests)

    def _settled(self, records: Iterable[KeyRecord]) -> list[KeyRecord]:
        """Confirm the committed attempts and remove the failed ones; return all that remain."""
        return [record for record in records if record.confirmed or self._settle(record)]

    def _settle(self, record: KeyRecord) -> bool:
        if record.version > self.latest.version:
            return True  # in progress, or its driver ended: a later clean-up settles it
        outcome = determine_outcome(self.manifests, self.latest.checkout_version(self.latest.version), record)
        if not outcome.is_known:
            return True
        if outcome.commit is None:
            retract(self.manifests, [record])
            return False
        confirm(self.manifests, record)
        return True

    def _is_old(self, files: Iterable[StoredFile], records: Iterable[KeyRecord]) -> bool:
        remaining = list(records)
        in_progress = any(record.version > self.latest.version for record in remaining)
        if self.before is None or not remaining or in_progress:
            return False
        return max(file.modified for file in files) < self.before


def _folder(file: StoredFile) -> str:
    return file.path.rpartition("/")[0]


def _shard(file: StoredFile) -> str:
    return _folder(file).rpartition("/")[0]
