"""Removal of old versions and their files, beside clients that tag and restore versions.

The versions that may be removed are recorded first. Only then are the tags and the newest version read, by
which Lance plans what to remove: `version_removals` explains why no order of steps removes what is needed.

Lance reads the manifest of every version, and lists the table's folders once. The files are removed here: on
an object store up to a thousand by one request, where Lance would make one for each; on local files without
following a link that was put into the table since Lance listed it. Manifests go last. So an interrupted
removal leaves no file without a manifest that accounts for it, and the next one continues.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.locations import is_local
from airflow_provider_lancens.namespace.storage.file_paths import is_file_path
from airflow_provider_lancens.namespace.storage.manifests import Manifest, Manifests
from airflow_provider_lancens.namespace.storage.version_removals import (
    RecordedRemoval,
    recorded_removal,
    removals_at,
)
from airflow_provider_lancens.namespace.storage.version_tags import read_references

if TYPE_CHECKING:
    from lance import LanceDataset

_BATCH = 1000
"""Files that S3 removes by one request."""
_ALL = 2**31
_MANIFEST = "manifest"
_CLOCKS = timedelta(minutes=10)
"""Allowed difference between the clocks of writers, whose times Lance compares, and that of the storage."""


@dataclass(frozen=True, slots=True)
class Retention:
    """Which versions a clean-up keeps: young ones, the newest ones, and tagged ones."""

    older_than: timedelta
    keep_versions: int

    def plan(self, dataset: LanceDataset) -> Any:
        """Return what Lance would remove now."""
        return _explained(dataset, self._limits)

    def candidates(self, stored: Mapping[int, Manifest], newest: int, now: datetime) -> list[int]:
        """Return the versions that may be removed, whether they are tagged or not."""
        limit = 1000 * (now - self.older_than + _CLOCKS).timestamp()
        old = sorted(version for version in stored if version <= newest)[: -self.keep_versions]
        return [version for version in old if (stored[version].modified_millis or 0) <= limit]

    def among(self, versions: Sequence[int]) -> dict[str, Any]:
        """Return the limits, as Lance takes them, of a removal of some of these versions."""
        if versions:
            return {**self._limits, "versions": list(versions)}
        return {
            **self._limits,
            "retain_versions": _ALL,
        }  # files to which no version refers remain to be removed

    @property
    def _limits(self) -> dict[str, Any]:
        return {"older_than": self.older_than, "retain_versions": self.keep_versions}


@dataclass(frozen=True, slots=True)
class Removed:
    """Versions and files that were removed."""

    versions: int = 0
    files: int = 0
    """Data, deletion and index files."""
    bytes: int = 0
    """Of all files, also manifests and transactions."""

    @classmethod
    def of(cls, stats: Any) -> Self:
        """Return what Lance counted."""
        files = stats.data_files_removed + stats.index_files_removed + stats.deletion_files_removed
        return cls(int(stats.old_versions), int(files), int(stats.bytes_removed))

    def __add__(self, other: Removed) -> Removed:
        """Return the sum of both."""
        return Removed(self.versions + other.versions, self.files + other.files, self.bytes + other.bytes)


def remove_versions(
    open_newest: Callable[[], LanceDataset],
    files: Manifests,
    retention: Retention,
    newest: int,
    now: datetime,
) -> Removed:
    """Remove old versions, and the files that only they refer to; finish removals that were interrupted.

    Args:
        open_newest: opens the dataset at the version that is newest when it is called.
        files: the files at its location.
        retention: which versions to keep.
        newest: the newest version as last read.
        now: the time by the storage's clock.

    Raises:
        ServiceUnavailableError: (17) the storage refused to delete some files; a repetition continues.
    """
    unfinished = removals_at(files)
    stored = files.all()
    candidates = retention.candidates(stored, newest, now)
    # Whatever their age, since they may lack files.
    begun = [version for version in stored if any(removal.began_with(version) for removal in unfinished)]
    with recorded_removal(files, {*candidates, *begun}) as removal:
        dataset = open_newest()
        sweep = _Sweep(dataset, files, removal)
        removed = sweep.remove(retention.among(candidates))
        if begun:
            removed += sweep.remove({"versions": begun})
    # Each of their versions is gone, or was tagged before they began, so nobody has to see them any more.
    files.remove(*(one.path for one in unfinished))
    return removed


@dataclass(frozen=True, slots=True)
class _Sweep:
    dataset: LanceDataset
    files: Manifests
    removal: RecordedRemoval

    def remove(self, limits: Mapping[str, Any]) -> Removed:
        plan = _explained(self.dataset, limits)
        paths = _paths(plan, self.files.location)
        self.removal.begin()
        if paths is None:
            return self._removed_by_lance(limits)
        for start in range(0, len(paths), _BATCH):
            self.files.remove(*paths[start : start + _BATCH])
        return Removed.of(plan.stats)

    def _removed_by_lance(self, limits: Mapping[str, Any]) -> Removed:
        stats = self.dataset.cleanup_old_versions(**limits, error_if_tagged_old_versions=False)
        if refused := stats.failed_deletes:
            raise spec_errors.ServiceUnavailableError(
                f"{self.files.location}: the storage refused to delete {refused} files; run it again"
            )
        return Removed.of(stats)


def _explained(dataset: LanceDataset, limits: Mapping[str, Any]) -> Any:
    return read_references(
        dataset,
        lambda: dataset.explain_cleanup_old_versions(
            **limits, error_if_tagged_old_versions=False, include_files=True, max_files=_ALL
        ),
    )


def _paths(plan: Any, location: str) -> list[str] | None:
    """Return the paths of all files to remove, the manifests last; None if only Lance can remove them."""
    if plan.referenced_branches:
        return None  # it cascades to branches, whose files aren't all in the plan
    root = (location if is_local(location) else urlsplit(location).path).strip("/")
    named = [(file.path, file.kind == _MANIFEST) for file in plan.candidate_files]
    if any(not path.startswith(f"{root}/") for path, _ in named):
        return None
    named.sort(key=lambda file: file[1])  # stable: in the order of the listings
    below = (path[len(root) + 1 :] for path, _ in named)
    return [path for path in below if is_file_path(path)]  # others aren't Lance's: they stay
