"""Migrate a table from before the key records: read its history once, and write the records.

The migration may be interrupted and repeated, also by several drivers at once: all write the same records.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.table_properties import WRITES
from airflow_provider_lancens.spark.keys.key_index import KeyIndex, mark_complete
from airflow_provider_lancens.spark.keys.key_records import (
    KeyRecord,
    confirm,
    digest,
    is_unique,
    write_record,
)
from airflow_provider_lancens.spark.keys.keyed_commit import Counts, KeyedCommit, key_of
from airflow_provider_lancens.spark.keys.restored_versions import RestoredVersions
from airflow_provider_lancens.spark.table.history import restored_version, transactions

if TYPE_CHECKING:
    from lance import LanceDataset

    from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable

_log = logging.getLogger(__name__)

_THREADS = 16
_LOGGED = "logged"
"""In place of the UUID of a transaction that was cleaned up."""


def migrate_keys(target: ResolvedTable, latest: LanceDataset, index: KeyIndex) -> None:
    """Write the records of all keys in a table's history and in its catalog table's old write log.

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
    restores: list[tuple[int, int]] = []
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="lance-keys") as pool:
        written = [
            pool.submit(_write, index, record, key, commit)
            for record, key, commit in (*_kept(latest, restores), *_logged(target, latest))
        ]
    for future in written:
        future.result()
    index.checkpoint.write(RestoredVersions(latest.version, tuple(sorted(restores))))
    mark_complete(index.files)


def _kept(
    latest: LanceDataset, restores: list[tuple[int, int]]
) -> Iterator[tuple[KeyRecord, str, KeyedCommit]]:
    """Yield the commits of the kept versions that have a key, and collect the Restores among the versions."""
    for version, transaction in transactions(latest, 0):
        if transaction is None:
            continue
        if (restored := restored_version(transaction)) is not None:
            restores.append((version, restored))
        key = key_of(transaction)
        if key and not is_unique(key):
            yield (
                KeyRecord(version, transaction.uuid, digest(key)),
                key,
                KeyedCommit.of(version, transaction),
            )


def _logged(target: ResolvedTable, latest: LanceDataset) -> Iterator[tuple[KeyRecord, str, KeyedCommit]]:
    """Yield the commits in the catalog table's old write log whose versions were cleaned up."""
    manifests = target.dataset.manifests
    try:
        writes = [tuple(write) for write in json.loads(target.write_log or "[]")]
        logged = [
            (str(key), int(version), str(fingerprint), *counts)
            for key, version, fingerprint, *counts in writes
        ]
    except (TypeError, ValueError) as error:
        raise spec_errors.InvalidTableStateError(
            f"table {target.id}: the catalog table's parameter {WRITES!r} cannot be parsed: {error}; remove "
            "it, after which the keys of versions that were cleaned up are unknown"
        ) from error
    for key_digest, version, fingerprint, *counts in logged:
        if version <= latest.version and manifests.find(version) is None:
            commit = KeyedCommit(version, _LOGGED, Counts(*map(int, counts)), fingerprint)
            yield KeyRecord(version, _LOGGED, key_digest), "", commit


def _write(index: KeyIndex, record: KeyRecord, key: str, commit: KeyedCommit) -> None:
    write_record(index.files, record, key, commit)
    confirm(index.files, record)
