"""Missing files of a dataset, which its versions refer to and the storage lacks.

A version whose files were removed can be opened and described, and fails when its rows are read. Lance is
imported only when a version is checked.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.locations import Location
from airflow_provider_lancens.namespace.storage.allowed_locations import AllowedLocations
from airflow_provider_lancens.namespace.storage.manifests import Manifests
from airflow_provider_lancens.namespace.storage.referenced_files import (
    INDICES,
    check_bases,
    files_at_bases,
    index_folders,
    index_folders_at_bases,
    index_names,
    is_among,
    paths_at_bases,
    referenced_files,
)
from airflow_provider_lancens.namespace.storage.table_files import TableFiles
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


@dataclass(frozen=True, slots=True)
class StoredVersions:
    """Versions of a dataset, read directly from the storage."""

    location: str
    storage_options: Mapping[str, str] = field(repr=False)
    allowed: AllowedLocations = field(default_factory=AllowedLocations, repr=False)
    """Locations in which the files that the versions refer to may be."""

    def missing_files(self, version: int) -> tuple[str, ...]:
        """Return the missing files that a version refers to: relative to the location, sorted.

        Raises:
            TableVersionNotFoundError: (11) there is no such version.
        """
        import lance

        options = snapshot(self.storage_options)
        check_links(self.location)
        try:
            dataset = lance.dataset(Location.of(self.location), version=version, storage_options=options)
        except ValueError as error:
            if self._manifests.find(version) is not None:
                raise
            raise spec_errors.TableVersionNotFoundError(
                f"{self.location} has no version {version}"
            ) from error
        return self.missing_files_of(check_bases(dataset, self.location, self.allowed))

    def missing_files_of(self, dataset: LanceDataset) -> tuple[str, ...]:
        """Return the missing files of an open version; files of a clone's source have their location."""
        files = self._manifests
        listed: set[str] = set()
        wanted = referenced_files(dataset)
        for folder in {path.rpartition("/")[0] for path in wanted}:
            listed.update(file.path for file in files.below(folder))
        # A listing may lack a file that was just written, so files that it lacks are checked one by one.
        missing = files.missing(wanted - listed)
        for location, paths in files_at_bases(dataset).items():
            source = TableFiles(location, self.storage_options)
            missing += [f"{location}/{path}" for path in source.missing(paths)]
        segments = StoredSegments(self.location, self.storage_options)
        for index in dataset.describe_indices():
            missing += segments.incomplete(dataset, index)
        return tuple(sorted(missing))

    def newest_complete(self, below: int) -> int | None:
        """Return the newest version below another one without missing files; None if there is none."""
        older = sorted((version for version in self._manifests.all() if version < below), reverse=True)
        return next((version for version in older if self._is_complete(version)), None)

    def _is_complete(self, version: int) -> bool:
        try:
            return not self.missing_files(version)
        except spec_errors.TableVersionNotFoundError:  # cleaned up meanwhile
            return False

    @property
    def _manifests(self) -> Manifests:
        return Manifests(self.location, self.storage_options)


@dataclass(frozen=True, slots=True)
class StoredSegments:
    """What the storage has of the segments of a dataset's indices; their files are listed once."""

    location: str
    storage_options: Mapping[str, str] = field(repr=False)
    _listed: dict[str, int] = field(default_factory=dict, init=False, repr=False)
    """The bytes of the files in each segment's folder."""

    def incomplete(self, dataset: LanceDataset, index: Any) -> list[str]:
        """Return the folders of an index's segments that lack files, or parts of them.

        Args:
            dataset: the dataset, opened at a version with the index.
            index: the index, as Lance describes it.

        Returns:
            Folders relative to the location; a folder in a clone's source begins with the source's location.
        """
        found = []
        for segment in index.segments:
            folder = f"{INDICES}/{segment.uuid}"
            size = segment.size_bytes or 1  # some writers don't record the size
            if segment.base_id is None:
                # A listing may lack a segment that was just written, so its folder is listed again.
                if self._bytes(folder) < size and _bytes_in(self._files, folder) < size:
                    found.append(folder)
                continue
            ((location, (inside,)),) = paths_at_bases(dataset, [(segment.base_id, folder)]).items()
            if _bytes_in(TableFiles(location, self.storage_options), inside) < size:
                found.append(f"{location}/{inside}")
        return found

    def _bytes(self, folder: str) -> int:
        if not self._listed:
            sizes: Counter[str] = Counter()
            for page in self._files.all_below(INDICES):
                for file in page:
                    sizes[file.path.rpartition("/")[0]] += file.size
            self._listed.update(sizes)
        return self._listed.get(folder, 0)

    @property
    def _files(self) -> TableFiles:
        return TableFiles(self.location, self.storage_options)


def is_of_index(path: str) -> bool:
    """Return whether a missing file, as `StoredVersions` names it, is a part of an index."""
    return path.rpartition("/")[0].endswith(INDICES)


def _bytes_in(files: TableFiles, folder: str) -> int:
    return sum(file.size for file in files.below(folder))


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
        lost = next(
            filter(None, (_lost(dataset, path) for dataset in _versions(location, storage_options))), None
        )
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
            with contextlib.suppress(ValueError):  # the version was removed meanwhile
                yield lance.dataset(Location.of(location), version=version, storage_options=options)
