"""The index of a table's key records: whether they are complete, what expired, and known Restores.

One listing of its folder returns all of that, and is all that a lookup needs besides the key's own records.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.storage.object_store import RECORDED
from airflow_provider_lancens.namespace.storage.table_files import StoredFile, TableFiles
from airflow_provider_lancens.spark.keys.key_records import KEYS, KeyRecord, records_in, retract
from airflow_provider_lancens.spark.keys.restored_versions import RestoreCheckpoint, checkpoint_of

if TYPE_CHECKING:
    from lance import LanceDataset

    from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable

_log = logging.getLogger(__name__)

INDEX = f"{RECORDED}/key-index"
"""Folder of the index."""
_COMPLETE = f"{INDEX}/index.json"
_EXPIRED = f"{INDEX}/expired"
EXPIRED_KEYS = f"{RECORDED}/expired-keys"
"""Folder of the expired keys, see `expired_keys`."""
FOLDERS = frozenset({KEYS, INDEX, EXPIRED_KEYS})
"""All folders of keys: no clean-up of other files touches them."""


@dataclass(frozen=True, slots=True)
class KeyIndex:
    """The index as listed."""

    files: TableFiles
    listed: Sequence[StoredFile]
    is_complete: bool
    """Whether every key that was ever committed has its records; false before an older table is migrated."""
    has_expired: bool
    """Whether any key has expired."""

    @classmethod
    def of(cls, files: TableFiles) -> Self:
        """List the index of a table."""
        listed = files.below(INDEX)
        paths = [file.path for file in listed]
        return cls(files, listed, is_complete=_COMPLETE in paths, has_expired=_EXPIRED in paths)

    @property
    def checkpoint(self) -> RestoreCheckpoint:
        """The checkpoint of the table's Restores."""
        return RestoreCheckpoint.among(self.files, INDEX, self.listed)

    def mark_expired(self) -> None:
        """Record that keys have expired; called before the records of the first are removed."""
        if not self.has_expired:
            self.files.put(_EXPIRED, b"")


def mark_complete(files: TableFiles) -> None:
    """Record that every key of a table has its records."""
    files.put(_COMPLETE, json.dumps({"format": 1}).encode())


def remove_leftovers(files: TableFiles, exists: Callable[[], bool]) -> None:
    """Remove the keys of a dataset that was deleted by hand, except for the folder of this package.

    Another driver may be about to create the dataset, so its record is kept: only those of committed
    attempts are removed. A record that is kept by mistake is harmless: its version has another transaction.

    Args:
        files: the files at the table's location.
        exists: called after the listing, returns whether there is a dataset now, whose keys these are.
    """
    index = [file.path for file in files.below(INDEX)]
    expired = [file.path for page in files.all_below(EXPIRED_KEYS) for file in page]
    found = [file for page in files.all_below(KEYS) for file in page]
    records: list[KeyRecord] = [record for record in records_in(found) if record.confirmed]
    if not (index or expired or records) or exists():
        return
    files.remove(*index, *expired)
    retract(files, records)


def checkpoint_below(files: TableFiles, latest: LanceDataset) -> int | None:
    """Return the version of the checkpoint with the Restores up to the latest version; record the last few.

    The next commit stores it in its transaction, so that a rerun needn't read the history. Usually the latest
    version is such a commit, and nothing else is read.

    Returns:
        0 if there are no Restores; None if they are not known without reading many transactions.
    """
    try:
        newest = latest.read_transaction(latest.version)
        if newest is not None and (known := checkpoint_of(newest)) is not None:
            return known
        return KeyIndex.of(files).checkpoint.covering(latest)
    except (OSError, RuntimeError, TypeError, ValueError):  # another client's transaction, which is invalid
        return None


def record_restores(target: ResolvedTable, latest: LanceDataset) -> None:
    """Record the Restores up to the latest version, so that they are known once it is cleaned up.

    A failure is logged, since they are committed; a clean-up records them too before it removes versions.
    """
    try:
        KeyIndex.of(target.dataset.manifests).checkpoint.advance(latest, completely=True)
    except spec_errors.LanceNamespaceError as error:
        _log.warning(
            "Table %s: version %d is committed, but could not be recorded as a restore; a clean-up does "
            "that: %s",
            target.id,
            latest.version,
            error,
        )
