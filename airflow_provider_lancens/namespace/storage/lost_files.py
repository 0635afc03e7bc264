"""Errors of Lance for a missing file, which is lost, or which a clean-up removed meanwhile.

Lance's text names only the file. Its versions distinguish the two cases: as long as a version refers to the
file, each try fails like this one; if there is none, the next try reads another version.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.locations import Location
from airflow_provider_lancens.namespace.storage.manifests import Manifests
from airflow_provider_lancens.namespace.storage.missing_files import (
    files_at_bases,
    index_folders,
    index_folders_at_bases,
    index_names,
    is_among,
    referenced_files,
)
from airflow_provider_lancens.namespace.storage.table_links import check_links
from airflow_provider_lancens.namespace.storage.vended_options import snapshot
from airflow_provider_lancens.namespace.storage.version_removals import removals_at
from airflow_provider_lancens.redaction import redact, secret_values

if TYPE_CHECKING:
    from lance import LanceDataset

_NOT_FOUND = re.compile(
    r"(?:Not found: |Object at location )(?:[^,\n]*/)?((?:data|_deletions|_indices)/[^,\s]+)"
)
"""What Lance and the object store say, and the path of the file below the root of its dataset."""
_SEARCHED = 100
"""Versions that are searched for a reference to the file, at most: the newest ones."""


def lost_file_error(
    error: BaseException, location: str, storage_options: Mapping[str, str]
) -> spec_errors.LanceNamespaceError | None:
    """Return the error for a data, deletion or index file that Lance didn't find.

    Reads the newest versions, one request each, until one refers to the file.

    Args:
        error: what Lance raised.
        location: the root of the dataset; its file may be below another one, of which it is a clone.
        storage_options: Lance's storage options for it.

    Returns:
        An InvalidTableStateError (19) if a version refers to the file, so that each try would fail. A
        ConcurrentModificationError (14) if none does any more. None if the error is another one, or if the
        versions can't be read.
    """
    found = _NOT_FOUND.search(str(error)) if isinstance(error, OSError | ValueError | RuntimeError) else None
    if found is None:
        return None
    path, secrets = found[1], secret_values(storage_options)
    try:
        lost = next(filter(None, (_lost(one, path) for one in _versions(location, storage_options))), None)
    except (OSError, ValueError, RuntimeError, spec_errors.LanceNamespaceError):
        return None
    place = redact(location, secrets)
    if lost is None:
        return spec_errors.ConcurrentModificationError(
            f"{place}: file {path} is gone, and no version refers to it: a clean-up removed it meanwhile. "
            "Run it again, and clean up with an older_than that is longer than a read or a write takes"
        )
    shown = f"{place}: version {lost.version} refers to {redact(lost.path, secrets)}, which does not exist"
    if lost.index:
        return spec_errors.InvalidTableStateError(
            f"{shown}: a part of index {lost.index!r} is lost, and no row. Build the index again, with "
            "if_exists='replace', then run this again"
        )
    return spec_errors.InvalidTableStateError(
        f"{shown}: rows are lost. Restore the newest version that Table.check reports as complete, or "
        "overwrite the table"
    )


@dataclass(frozen=True, slots=True)
class _LostFile:
    version: int
    """The newest version that refers to the file."""
    path: str
    """Path relative to the root of the dataset; for a file in another dataset, with its location."""
    index: str
    """Name of the index that the file is part of; empty for data and deletions."""


def _lost(dataset: LanceDataset, path: str) -> _LostFile | None:
    """Return the file at a path, if the opened version refers to it."""
    found = [path] if is_among(path, referenced_files(dataset) | index_folders(dataset)) else []
    for elsewhere in (files_at_bases(dataset), index_folders_at_bases(dataset)):
        found += [f"{base}/{path}" for base, paths in elsewhere.items() if is_among(path, paths)]
    if not found:
        return None
    indices = (name for folder, name in index_names(dataset).items() if path.startswith(f"{folder}/"))
    return _LostFile(dataset.version, found[0], next(indices, ""))


def _versions(location: str, storage_options: Mapping[str, str]) -> Iterator[LanceDataset]:
    """Yield the newest versions that no clean-up is removing, newest first."""
    import lance

    check_links(location)
    options = snapshot(storage_options)
    files = Manifests(location, storage_options)
    stored = sorted(files.all(), reverse=True)[:_SEARCHED]
    removals = removals_at(files)
    for version in stored:
        if not any(removal.may_remove(version) for removal in removals):
            with contextlib.suppress(ValueError):  # removed since
                yield lance.dataset(Location.of(location), version=version, storage_options=options)
