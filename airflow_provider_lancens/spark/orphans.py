"""Removing the files that failed writes left behind, and no file of a write that is running.

A file goes where all of this holds: it is older than asked for, it was written before the oldest
running write began, and no version refers to it. The order of looking makes that safe: first the
files, then the marks, then the versions. A write that commits meanwhile is found in one or the other.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from lance_namespace.errors import InvalidInputError, UnsupportedOperationError

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.manifests import Manifests
from airflow_provider_lancens.namespace.storage import MANIFEST_SUFFIX, VERSIONS
from airflow_provider_lancens.namespace.table_files import StoredFile, TableFiles
from airflow_provider_lancens.spark.dataset import DatasetRef
from airflow_provider_lancens.spark.halfway import CommitFiles
from airflow_provider_lancens.spark.running import REFRESH, Mark, marks_of, running
from airflow_provider_lancens.spark.target import NamespaceSpec, Target, described

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance_namespace import LanceNamespace

_log = logging.getLogger(__name__)

A_WEEK = timedelta(days=7)
SHORTEST = timedelta(seconds=10 * REFRESH)
_SLACK = timedelta(minutes=1)
"""By how much the clocks of a storage's machines may differ."""
_FOLDERS = {"data": (".lance",), "_deletions": (".arrow", ".bin")}
_DETACHED, _BRANCHES = "d", "tree"


@dataclass(frozen=True, slots=True)
class Orphans:
    """Files that no version refers to and no running write needs."""

    table: str
    paths: tuple[str, ...]
    """From the table's location."""
    bytes: int
    removed: bool
    """Whether they are gone now; false for a dry run."""


def remove_orphans(
    namespace: NamespaceSpec | LanceNamespace,
    table: TableId | str,
    *,
    older_than: timedelta = A_WEEK,
    dry_run: bool = False,
) -> Orphans:
    """Remove the files of writes that failed: data, deletions, and what their commits left halfway.

    Writes of this package mark themselves while they run, for as long as that takes, so their files
    stay. Files of other writers are told by their age alone: let `older_than` be longer than any of
    their jobs.

    Args:
        namespace: the namespace that knows the table, or the words that make one.
        table: its identifier, such as ``db$table``.
        older_than: the age from which on a file counts as left behind, and a write without a sign of
            life as dead; at least ten minutes.
        dry_run: only tell what would be removed.

    Returns:
        What was removed.

    Raises:
        UnsupportedOperationError: (0) it has branches or detached versions, which may refer to anything.
        TableNotFoundError: (4) the table isn't declared.
        InvalidInputError: (13) an argument is wrong.
        ServiceUnavailableError: (17) the storage didn't answer; run it again.
    """
    if older_than < SHORTEST:
        raise InvalidInputError(f"older_than: expected at least {SHORTEST}, got {older_than}")
    with described(namespace, table) as target, running(target.dataset) as now:
        search = _Search(target, now.files, now.began - older_than)
        found, dead = search.orphans()
        if not dry_run:
            # Marks first: a driver that sleeps and wakes up then learns that its files are gone.
            now.files.remove(*(mark.path for mark in dead))
            now.files.remove(*(file.path for file in found))
    paths = tuple(sorted(file.path for file in found))
    answer = Orphans(str(target.id), paths, sum(file.size for file in found), removed=not dry_run)
    said = "would be removed" if dry_run else "removed"
    _log.info("table %s: %d files, %.1f MB %s", answer.table, len(paths), answer.bytes / 1e6, said)
    return answer


@dataclass(frozen=True, slots=True)
class _Search:
    target: Target
    files: TableFiles
    threshold: datetime

    def orphans(self) -> tuple[list[StoredFile], list[Mark]]:
        """The files to remove, and the marks of dead writes."""
        old = [file for file in self._written() if file.modified < self.threshold]
        marks = marks_of(self.files)
        alive = [mark.began for mark in marks if mark.refreshed >= self.threshold]
        beginning = min(alive) - _SLACK
        kept = self._referred_to()
        found = [file for file in old if file.modified < beginning and file.path not in kept]
        return found, [mark for mark in marks if mark.refreshed < self.threshold]

    def _written(self) -> Iterator[StoredFile]:
        for folder, endings in _FOLDERS.items():
            yield from (file for file in self.files.below(folder) if file.path.endswith(endings))
        yield from CommitFiles(self.files).on_the_way()

    def _referred_to(self) -> set[str]:
        self._check_countable()
        # Asked first: it gives the newest version of a managed table its final name.
        newest = self.target.latest_version()
        manifests = Manifests(self.target.dataset.location, self.target.dataset.storage_options)
        by_path = DatasetRef(self.target.dataset.location, self.target.dataset.storage_options)
        versions = manifests.all()
        kept: set[str] = set()
        for version in versions:
            try:
                kept |= _files_of(by_path.open(version))
            except ValueError:
                if manifests.find(version) is not None:
                    raise
                # cleaned up meanwhile, and its own files with it
        if newest is not None:
            # Of a managed table it needn't be what lies under its name: a writer by path may have taken that.
            kept |= _files_of(self.target.open(newest))
        return kept | CommitFiles(self.files).needed(newest)

    def _check_countable(self) -> None:
        names = [file.path.rpartition("/")[2] for file in self.files.below(VERSIONS)]
        detached = any(name.startswith(_DETACHED) and name.endswith(MANIFEST_SUFFIX) for name in names)
        if detached or self.files.folders(_BRANCHES):
            what = "detached versions" if detached else "branches"
            raise UnsupportedOperationError(
                f"table {self.target.id}: it has {what}, which may "
                "refer to files that its versions don't; remove those first"
            )


def _files_of(dataset: LanceDataset) -> set[str]:
    paths: set[str] = set()
    for fragment in dataset.get_fragments():
        metadata = fragment.metadata
        # Older versions of Lance know no overlays.
        overlays = [overlay.data_file for overlay in getattr(metadata, "overlays", ())]
        paths |= {f"data/{file.path}" for file in [*metadata.files, *overlays]}
        if metadata.deletion_file is not None:
            paths.add(metadata.deletion_file.path(metadata.id))
    return paths
