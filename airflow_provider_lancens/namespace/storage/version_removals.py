"""Records of removals, by which clean-ups and clients that tag or restore a version see each other.

Both write before they read:

- A clean-up records the versions that it may remove. Then it reads the tags and the newest version, and
  removes only what they leave. It deletes its record when everything is removed.
- A client that needs a version tags it. Then it reads the records, and whether the version still has a
  manifest.

If the record was written before the client read the records, the client sees it, and is refused. Otherwise
the clean-up reads the tags later than that, so it sees the tag, and keeps the version. A version that a
clean-up has finished removing in between has no manifest any more: manifests go before the record does.

A clean-up that is interrupted leaves its record, and versions that lack some of their files. Nobody can tag
or restore them, until the next clean-up has removed the rest of them.
"""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.storage.json_records import UNREADABLE, record_fields
from airflow_provider_lancens.namespace.storage.manifests import Manifests
from airflow_provider_lancens.namespace.storage.object_store import RECORDED
from airflow_provider_lancens.namespace.storage.table_files import StoredFile, TableFiles

if TYPE_CHECKING:
    from lance import LanceDataset

REMOVALS = f"{RECORDED}/removals"
_VERSIONS = "versions"


@dataclass(frozen=True, slots=True)
class VersionRemoval:
    """The record of a clean-up that is removing versions, or was interrupted while it did."""

    path: str
    began: datetime
    ranges: tuple[tuple[int, int], ...] | None
    """First and last numbers of versions that it may remove; None if the record can't be read: any."""

    def may_remove(self, version: int) -> bool:
        """Return whether it may remove a version."""
        return self.ranges is None or self.began_with(version)

    def began_with(self, version: int) -> bool:
        """Return whether its record names a version, some of whose files it may have removed."""
        return any(first <= version <= last for first, last in self.ranges or ())


@dataclass(slots=True)
class RecordedRemoval:
    """A removal that has a record."""

    has_begun: bool = False

    def begin(self) -> None:
        """Note that files are about to be removed, so that the removal has to be finished by all means."""
        self.has_begun = True


def removals_at(files: TableFiles) -> list[VersionRemoval]:
    """Return the removals that have begun and not ended; one request, and one more for each of them."""
    records = (_read(files, file) for file in files.below(REMOVALS))
    return [removal for removal in records if removal is not None]


@contextlib.contextmanager
def recorded_removal(files: TableFiles, versions: Collection[int]) -> Iterator[RecordedRemoval]:
    """Record for the duration of the block that versions may be removed.

    If the block fails after it called `begin`, the record remains: the next clean-up finishes the removal.

    Args:
        files: the files at the table's location.
        versions: all versions that the block may remove; without any, nothing is recorded.
    """
    removal = RecordedRemoval()
    if not versions:
        yield removal
        return
    path = f"{REMOVALS}/{uuid.uuid4()}"
    files.put(path, json.dumps({_VERSIONS: _ranges(versions)}).encode())
    try:
        yield removal
    except BaseException:
        if not removal.has_begun:
            files.remove(path)
        raise
    files.remove(path)


def check_not_removed(dataset: LanceDataset, files: Manifests, version: int) -> None:
    """Check that no clean-up removes or has removed a version; two requests.

    Args:
        dataset: the table's dataset, at any version.
        files: the files at its location.
        version: a version of the main line; if the caller has tagged it, no later clean-up removes it.

    Raises:
        ConcurrentModificationError: (14) a clean-up may be removing it.
        TableVersionNotFoundError: (11) a clean-up has removed it.
    """
    for removal in removals_at(files):
        if removal.may_remove(version):
            raise spec_errors.ConcurrentModificationError(
                f"{files.location}: version {version} is being removed by a clean-up that began at "
                f"{removal.began:%Y-%m-%d %H:%M:%S} UTC; choose a newer version, or run this again when "
                "the clean-up has ended; if it was interrupted, the next clean-up of the table finishes it"
            )
    # The newest version of a managed table may not have its final name yet; no clean-up removes it.
    if files.find(version) is None and version != dataset.latest_version:
        raise spec_errors.TableVersionNotFoundError(
            f"{files.location}: version {version} was cleaned up meanwhile"
        )


def is_removed(files: Manifests, version: int) -> bool:
    """Return whether a clean-up has removed a version, or may be removing it."""
    return files.find(version) is None or any(removal.may_remove(version) for removal in removals_at(files))


def _read(files: TableFiles, file: StoredFile) -> VersionRemoval | None:
    content = files.read(file.path)
    if content is None:
        return None  # the removal has just ended
    try:
        ranges = tuple((int(first), int(last)) for first, last in record_fields(content)[_VERSIONS])
    except UNREADABLE:
        return VersionRemoval(file.path, file.modified, None)
    return VersionRemoval(file.path, file.modified, ranges)


def _ranges(versions: Iterable[int]) -> list[tuple[int, int]]:
    ordered = sorted(versions)
    runs = groupby(enumerate(ordered), key=lambda numbered: numbered[1] - numbered[0])
    spans = ([version for _, version in run] for _, run in runs)
    return [(span[0], span[-1]) for span in spans]
