"""When a key expires: a clean-up settles the attempts of all keys, and removes the records of old ones.

Called before versions are removed, since the transaction of a version shows which attempt created it. The
records are listed shard by shard, so that memory doesn't grow with the table's age. Each step may be
repeated: an interrupted clean-up is finished by the next one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from airflow_provider_lancens.namespace.storage.manifests import Manifests
from airflow_provider_lancens.namespace.storage.table_files import StoredFile
from airflow_provider_lancens.spark.keys.key_records import (
    KEYS,
    ExpiredKeys,
    KeyIndex,
    KeyRecord,
    confirm,
    confirm_at,
    records_in,
    retract,
    unconfirm,
)
from airflow_provider_lancens.spark.keys.key_search import TableHistory, recover_keys

if TYPE_CHECKING:
    from lance import LanceDataset

    from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable


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
        recover_keys(target, latest, index)
        index = KeyIndex.of(manifests)
    work = _Shards(manifests, TableHistory.of(manifests, latest, index), index, before)
    if (few := _all_if_few(manifests)) is not None:
        expired = sum(work.maintain(shard, list(group)) for shard, group in itertools.groupby(few, _shard))
    else:
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="lance-keys") as pool:
            expired = sum(pool.map(work.maintain, manifests.folders(KEYS)))
    work.mark_settled()
    return expired


def _all_if_few(manifests: Manifests) -> list[StoredFile] | None:
    """Return all files of keys by shard if one request lists them; None if there are more."""
    pages = manifests.all_below(KEYS)
    first = next(pages, [])
    return None if next(pages, None) else sorted(first, key=_shard)


@dataclass(frozen=True, slots=True)
class _Shards:
    manifests: Manifests
    history: TableHistory
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
            # Written before the records are removed, so that a lookup finds the key in one of both places.
            ExpiredKeys(self.manifests).add(shard.rpartition("/")[2], digests)
            self.index.mark_expired()
            retract(self.manifests, expired)
        return len(digests)

    def mark_settled(self) -> None:
        """Record that all attempts up to this version are settled: the confirmed ones were committed."""
        segments, newest = self.history.segments, self.history.newest
        if newest is None or newest in segments.settled:
            return
        segments.store(replace(self.history.lineage, segments=()), settled=True)
        outdated = [path for point, path in segments.listed.items() if point.version <= newest.version]
        if outdated:
            self.manifests.remove_outdated(*outdated)

    def _settled(self, records: Iterable[KeyRecord]) -> list[KeyRecord]:
        """Confirm the committed attempts and remove the failed ones; return all that remain."""
        return [record for record in records if self._settle(record)]

    def _settle(self, record: KeyRecord) -> bool:
        history = self.history
        if record.version > history.lineage.version:
            return True  # still in progress, or abandoned: a later clean-up settles it
        made = history.is_made(record)
        if made is False:
            retract(self.manifests, [record])
            return False
        is_shown = history.lineage.keeps(record.version) is not None
        has_rows = None if made and is_shown else history.has_rows(record)
        if has_rows and not is_shown and history.newest is not None:
            confirm_at(self.manifests, record, history.newest)
        if (made or has_rows) and not record.confirmed:
            confirm(self.manifests, record)
        elif record.confirmed and not (made or has_rows):
            unconfirm(self.manifests, record)
        return True

    def _is_old(self, files: Iterable[StoredFile], records: Iterable[KeyRecord]) -> bool:
        remaining = list(records)
        in_progress = any(record.version > self.history.lineage.version for record in remaining)
        if self.before is None or not remaining or in_progress:
            return False
        return max(file.modified for file in files) < self.before


def _folder(file: StoredFile) -> str:
    return file.path.rpartition("/")[0]


def _shard(file: StoredFile) -> str:
    return _folder(file).rpartition("/")[0]
