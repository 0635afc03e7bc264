"""What the tags of expired bookmarks keep, for a dry run: Lance can only say what it removes beside them."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from airflow_provider_lancens.namespace.storage.missing_files import index_folders, referenced_files
from airflow_provider_lancens.namespace.storage.object_store import VERSIONS, manifest_names
from airflow_provider_lancens.namespace.storage.version_tags import list_tags
from airflow_provider_lancens.spark.maintenance.orphans import PendingCommitFiles
from airflow_provider_lancens.spark.maintenance.table_state import referenced_versions
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable

if TYPE_CHECKING:
    from lance import LanceDataset


@dataclass(frozen=True, slots=True)
class HeldFiles:
    """Versions and files that a clean-up would remove too, if some tags were deleted."""

    versions: int = 0
    files: int = 0
    """Data, deletion and index files."""
    bytes: int = 0
    """Of all files, also manifests and transactions."""


def held_by_tags(
    target: ResolvedTable,
    dataset: LanceDataset,
    names: Collection[str],
    older_than: timedelta,
    keep_versions: int,
) -> HeldFiles:
    """Return what a clean-up keeps only for some tags. It reads the manifest of every version that is kept.

    Args:
        target: the table.
        dataset: its dataset at the newest version.
        names: the tags.
        older_than: the age from which the clean-up removes a version.
        keep_versions: how many of the newest versions it keeps.
    """
    manifests = target.dataset.manifests.all()
    limit = 1000 * (time.time() - older_than.total_seconds())
    old = {
        version
        for version in sorted(v for v in manifests if v <= dataset.version)[:-keep_versions]
        if (manifests[version].modified_millis or 0) <= limit
    }
    old -= referenced_versions(dataset, names)
    tags = list_tags(dataset)
    held = old & {int(tags[name]["version"]) for name in names if name in tags}
    paths = _files(target, held) - _files(target, (v for v in manifests if v not in old))
    size = sum(_size(target, path) for path in (*paths, *_of_commits(target, held)))
    return HeldFiles(len(held), len(paths), size)


def _files(target: ResolvedTable, versions: Iterable[int]) -> set[str]:
    found: set[str] = set()
    by_path = replace(target.dataset, decider=None)
    for version in versions:
        dataset = by_path.open(version)
        folders = index_folders(dataset)
        indices = (file.path for folder in folders for file in target.dataset.manifests.below(folder))
        found |= referenced_files(dataset) | set(indices)
    return found


def _of_commits(target: ResolvedTable, versions: Iterable[int]) -> set[str]:
    """Return the manifests of versions, and the transactions that made them."""
    manifests = {f"{VERSIONS}/{name}" for version in versions for name in manifest_names(version)}
    commits = PendingCommitFiles(target.dataset.manifests)
    return {path for one in manifests for path in (one, *commits.transactions_in(one))}


def _size(target: ResolvedTable, path: str) -> int:
    file = target.dataset.manifests.stat(path)
    return 0 if file is None else file.size
