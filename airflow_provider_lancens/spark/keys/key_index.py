"""The index of a table's key records: whether they are complete, what expired, and segments of its lineage.

One listing of its folder returns all of that, and is all that a lookup needs besides the key's own records.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.storage.object_store import RECORDED
from airflow_provider_lancens.namespace.storage.table_files import StoredFile, TableFiles
from airflow_provider_lancens.spark.keys.commit_lineage import LONG, MAX_READ, Lineage, Segments, read_lineage
from airflow_provider_lancens.spark.keys.key_records import (
    KEYS,
    KeyRecord,
    has_records,
    records_in,
    retract,
)

if TYPE_CHECKING:
    from lance import LanceDataset

_log = logging.getLogger(__name__)

INDEX = f"{RECORDED}/key-index"
"""Folder of the index."""
_COMPLETE = f"{INDEX}/index.json"
_LOST = f"{INDEX}/lost"
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
    """Whether every key that was ever committed has its records; false before `recover_keys`."""
    has_expired: bool
    """Whether any key has expired."""
    has_lost: bool = False
    """Whether the records of keys were lost whose versions were cleaned up."""

    @classmethod
    def of(cls, files: TableFiles) -> Self:
        """List the index of a table."""
        listed = files.below(INDEX)
        paths = [file.path for file in listed]
        return cls(
            files,
            listed,
            is_complete=_COMPLETE in paths,
            has_expired=_EXPIRED in paths,
            has_lost=_LOST in paths,
        )

    @property
    def segments(self) -> Segments:
        """The segments of the table's lineage."""
        return Segments.among(self.files, INDEX, self.listed)

    def mark_lost(self) -> None:
        """Record that the records of keys were lost, before any key counts as never committed."""
        self.files.put(_LOST, b"")

    def accept_lost(self) -> None:
        """Record that keys without records count as never committed, although records were lost."""
        self.files.remove(_LOST)

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
            # A key may have been committed by versions that are gone; a loss of its record must be noticed.
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
