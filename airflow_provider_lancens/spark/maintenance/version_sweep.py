"""Removal of old versions and their files, by as few requests as the storage allows.

Lance finds what may be removed: it reads the manifest of every version, and lists the table's folders once.
The files are removed here: on an object store up to a thousand by one request, where Lance would make one for
each; on local files without following a link that was put into the table since Lance listed it.

Manifests go last. So an interrupted removal leaves no file without a manifest that accounts for it, and the
next one continues: it reads the manifests and lists the files that are left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.locations import is_local
from airflow_provider_lancens.namespace.storage.file_paths import is_file_path
from airflow_provider_lancens.namespace.storage.table_files import TableFiles

if TYPE_CHECKING:
    from lance import LanceDataset

_BATCH = 1000
"""Files that S3 removes by one request."""
_ALL = 2**31
_MANIFEST = "manifest"


def remove_versions(dataset: LanceDataset, files: TableFiles, limits: Mapping[str, Any]) -> Any:
    """Remove old versions, and the files that only they refer to.

    Args:
        dataset: the dataset, opened at its newest version.
        files: the files at its location.
        limits: which versions, as Lance's `cleanup_old_versions` takes it.

    Returns:
        What was removed, as Lance counts it.

    Raises:
        ServiceUnavailableError: (17) the storage refused to delete some files; a repetition continues.
    """
    plan, place = _plan(dataset, limits), files.location
    root = place if is_local(place) else urlsplit(place).path
    paths = None if plan is None else _paths(plan, root.strip("/"))
    if plan is None or paths is None:
        return _removed_by_lance(dataset, files, limits)
    for batch in _batches(paths):
        files.remove(*batch)
    return plan.stats


def _plan(dataset: LanceDataset, limits: Mapping[str, Any]) -> Any:
    """Return what Lance would remove; None if it can't name the files."""
    try:
        plan = dataset.explain_cleanup_old_versions(**limits, include_files=True, max_files=_ALL)
    except TypeError:  # a Lance that only counts them
        return None
    # A clean-up may cascade to branches, whose files aren't all among these.
    return None if plan.candidate_files_truncated or plan.referenced_branches else plan


def _paths(plan: Any, root: str) -> list[str] | None:
    """Return the paths of all files to remove, the manifests last; None if one isn't below the location."""
    named = [(file.path, file.kind == _MANIFEST) for file in plan.candidate_files]
    if any(not path.startswith(f"{root}/") for path, _ in named):
        return None
    named.sort(key=lambda one: one[1])  # stable: in the order of the listings
    below = (path[len(root) + 1 :] for path, _ in named)
    return [path for path in below if is_file_path(path)]  # others aren't Lance's: they stay


def _batches(paths: Sequence[str]) -> Iterator[Sequence[str]]:
    return (paths[start : start + _BATCH] for start in range(0, len(paths), _BATCH))


def _removed_by_lance(dataset: LanceDataset, files: TableFiles, limits: Mapping[str, Any]) -> Any:
    removed = dataset.cleanup_old_versions(**limits)
    if refused := getattr(removed, "failed_deletes", 0):  # an older Lance raises an error instead
        raise spec_errors.ServiceUnavailableError(
            f"{files.location}: the storage refused to delete {refused} files; run it again"
        )
    return removed
