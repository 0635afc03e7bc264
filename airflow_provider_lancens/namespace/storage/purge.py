"""Deletion of a table's data: the only module of the package that deletes a whole dataset (guarantee 3).

Only files that Lance and this package write are deleted, identified by folder and name, below a location that
has ``_versions``, or the marker by which a folder's catalog declares a table. No symbolic link is followed or
removed; folders that aren't empty are kept. Files are deleted in the order of `LANCE_ENTRIES`, the manifests
last: they mark the folder as Lance's, so an interrupted removal is recognized and finished by the next one.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import obstore

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.locations import Location, is_local
from airflow_provider_lancens.namespace.storage import local_folder, object_store
from airflow_provider_lancens.namespace.storage.default_layout import is_own_place
from airflow_provider_lancens.namespace.storage.object_store import (
    BRANCHES,
    RECORDED,
    TAGS,
    VERSIONS,
    version_of,
)
from airflow_provider_lancens.namespace.storage.write_leases import LEASES
from airflow_provider_lancens.redaction import on_one_line

log = logging.getLogger(__name__)

_NAME = r"[^/]+"
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_UNFINISHED = r"\.tmp\w{6}"
"""Temporary file of a local writer before it is renamed."""
_FILES = {
    "data": rf"{_NAME}\.lance|[^/.]+/{_NAME}\.blob|{_UNFINISHED}",
    "_indices": rf"{_UUID}/.+",
    "_mem_wal": rf"{_UUID}/.+",
    "_deletions": rf"{_NAME}\.(?:arrow|bin)|{_UNFINISHED}",
    "_transactions": rf"{_NAME}\.txn|{_UNFINISHED}",
    "_refs": rf"(?:tags|branches)/{_NAME}\.json",
    RECORDED: r".+",
    VERSIONS: rf"{_NAME}\.manifest(?:-{_NAME})?|latest_version_hint\.json|{_UNFINISHED}",
}
"""File names in each of Lance's folders and in this package's."""
_ANY_FILE = "|".join(f"{folder}/(?:{files})" for folder, files in _FILES.items())
# A branch is a dataset in a folder of `tree`. A local object store stages a file as name#1.
_OWN = re.compile(rf"(?:{BRANCHES}/(?:{_NAME}/)+)?(?:{_ANY_FILE})(?:#\d+)?")
_TAG = re.compile(rf"{TAGS}/([^/]+)\.json")
LANCE_ENTRIES = (BRANCHES, *(folder for folder in _FILES if folder != VERSIONS), VERSIONS)
_PAGE = 1000
_NAMED = 10

_RemoveBelow = Callable[[str, Callable[[str], bool]], int]


@dataclass(frozen=True, slots=True)
class DropPlan:
    """What a drop of a table would delete."""

    location: str
    """The root of its dataset."""
    files: int
    """Number of Lance's and this package's files there, which are deleted."""
    bytes: int
    """Size of the files that are deleted."""
    tags: tuple[str, ...]
    """Names of the table's tags, whose versions are deleted too."""
    other_files: int
    """Number of other files and links there."""
    others: tuple[str, ...] = ()
    """Paths of some of the other files and links, relative to the location."""
    keeps_others: bool = True
    """Whether other files are kept; False if a catalog deletes the data, and may delete other files too."""

    def as_dict(self) -> dict[str, Any]:
        """Return the plan as plain JSON values, without the location."""
        return {
            "files": self.files,
            "bytes": self.bytes,
            "tags": list(self.tags),
            "other_files": self.other_files,
        }

    def __str__(self) -> str:
        fate = "are kept" if self.keeps_others else "are there, which the catalog may delete too"
        kept = f"; {self.other_files} other files {fate}" if self.other_files else ""
        tags = f", with tags {', '.join(map(on_one_line, self.tags))}" if self.tags else ""
        return f"{self.files} files of {self.bytes} bytes at {self.location}{tags}{kept}"


def remove(location: str, storage_options: Mapping[str, str], markers: frozenset[str] = frozenset()) -> int:
    """Remove Lance's and this package's files below a location; all others are kept and logged.

    Args:
        location: the table's root.
        storage_options: Lance's storage options for it.
        markers: names of files at the root by which a catalog marks its tables. They are removed last, and
            mark the location as Lance's as ``_versions`` does.

    Returns:
        The number of removed files; 0 if nothing marks the location as Lance's.

    Raises:
        InvalidInputError: (13) the location is invalid, or it or its ``_versions`` is a symbolic link.
        PermissionDeniedError: (15) access is denied; rerun it once granted.
        ServiceUnavailableError: (17) the storage failed; rerun it.
    """
    location = Location.of(location)
    with object_store.storage_errors(location, storage_options):
        if is_local(location):
            return _remove_local(Path(location), markers)
        return _remove_remote(location, storage_options, markers)


def plan(
    location: str, storage_options: Mapping[str, str], markers: frozenset[str] = frozenset()
) -> DropPlan:
    """Count the files that `remove` would remove and keep, in one listing.

    Args:
        location: the table's root.
        storage_options: Lance's storage options for it.
        markers: as of `remove`.

    Raises:
        InvalidInputError: (13) the location is invalid, or it or its ``_versions`` is a symbolic link.
        PermissionDeniedError: (15) access is denied.
        ServiceUnavailableError: (17) the storage failed.
    """
    location = Location.of(location)
    files = size = other_files = 0
    others: list[str] = []
    tags: list[str] = []
    with object_store.storage_errors(location, storage_options):
        if is_local(location):
            _check_not_linked(Path(location))
        is_table = object_store.latest_version(location, storage_options) is not None or bool(
            _found(markers, location, storage_options)
        )
        is_removed = _is_own if is_table else _is_lease
        for path, path_size in _sizes(location, storage_options):
            if path_size is None or not (path in markers or is_removed(path)):
                other_files += 1
                if len(others) < _NAMED:
                    others.append(path)
                continue
            files, size = files + 1, size + path_size
            if tag := _TAG.fullmatch(path):
                tags.append(tag[1])
    return DropPlan(location, files, size, tuple(sorted(tags)), other_files, tuple(others))


def first_foreign_path(location: str) -> str | None:
    """Return the first symbolic link among Lance's own files, or dataset inside them; None if there is none.

    Args:
        location: the table's root; only a local one is searched.
    """
    location = Location.of(location)
    if not is_local(location):
        return None
    for folder in LANCE_ENTRIES:
        path = Path(location, folder)
        if path.is_symlink():
            return str(path)
        for entry in local_folder.walk_entries(path):
            if entry.is_symlink():
                return entry.path
            if entry.name == VERSIONS and folder != BRANCHES:
                return str(Path(entry.path).parent)
    return None


def is_of_inner_dataset(path: str) -> bool:
    """Whether a file in one of Lance's own folders of a table is of another dataset in there.

    Args:
        path: its path relative to the table's location.
    """
    folders = path.split("/")[1:-1]
    return not _is_own(path) and not set(folders).isdisjoint(LANCE_ENTRIES)


def _check_not_linked(root: Path) -> None:
    for path in (root, root / VERSIONS):
        if path.is_symlink():
            raise spec_errors.InvalidInputError(
                f"{path} is a symbolic link, which a drop does not follow: deregister the table, or remove "
                "the link if the catalog is a folder (impl=dir), then delete the target of the link yourself"
            )


def _sizes(location: str, storage_options: Mapping[str, str]) -> Iterator[tuple[str, int | None]]:
    """Iterate over the files at a location with their sizes; None for what isn't a regular file."""
    if is_local(location):
        for entry in local_folder.walk_entries(location):
            if entry.is_dir(follow_symlinks=False):
                continue
            is_file = entry.is_file(follow_symlinks=False)
            with contextlib.suppress(FileNotFoundError):  # removed meanwhile
                size = entry.stat(follow_symlinks=False).st_size if is_file else None
                yield str(Path(entry.path).relative_to(location)), size
        return
    store = object_store.open_store(location, storage_options)
    if store is not None:
        for page in obstore.list(store, chunk_size=_PAGE):
            yield from ((entry["path"], entry["size"]) for entry in page)


def _remove_local(root: Path, markers: frozenset[str]) -> int:
    _check_not_linked(root)
    if not root.is_dir():
        return 0
    with local_folder.open_folder(root) as open_folder:
        names = local_folder.files_in(open_folder, VERSIONS)
        is_table = any(version_of(name) is not None for name in names) or not markers.isdisjoint(
            local_folder.files_in(open_folder, ".")
        )
        removed = _remove_all(
            lambda folder, is_own: local_folder.remove_below(open_folder, folder, is_own), is_table=is_table
        )
        removed += local_folder.remove_in(open_folder, markers)
    local_folder.remove_if_empty(root)
    if is_own_place(str(root)):
        local_folder.remove_if_empty(root.parent)
    if is_table and root.is_dir():
        _log_left(str(root), sorted(path.name for path in root.iterdir()))
    return removed


def _remove_remote(location: str, storage_options: Mapping[str, str], markers: frozenset[str]) -> int:
    store = object_store.open_store(location, storage_options)
    if store is None:
        return 0
    marked = _found(markers, location, storage_options)
    is_table = bool(marked) or object_store.latest_version(location, storage_options) is not None
    removed = _remove_all(
        lambda folder, is_own: _remove_objects(location, storage_options, folder, is_own), is_table=is_table
    )
    if marked:
        object_store.delete_objects(location, storage_options, marked)
    if not is_table:
        return removed
    left = obstore.list_with_delimiter(store)
    _log_left(location, sorted([*left["common_prefixes"], *(entry["path"] for entry in left["objects"])]))
    return removed + len(marked)


def _found(markers: frozenset[str], location: str, storage_options: Mapping[str, str]) -> list[str]:
    """Return the markers that are at a location."""
    if not markers:
        return []
    if is_local(location):
        return [entry.name for entry in local_folder.entries_in(location) if entry.name in markers]
    store: Any = object_store.open_store(location, storage_options)
    listed = obstore.list_with_delimiter(store)
    return [entry["path"] for entry in listed["objects"] if entry["path"] in markers]


def _remove_all(remove_below: _RemoveBelow, *, is_table: bool) -> int:
    """Remove the files of a table; what isn't marked as one may have leases, and the gate of a conversion."""
    removed = remove_below(RECORDED, _is_lease)  # first: a write without its lease commits nothing
    if not is_table:
        return removed
    removed += sum(remove_below(folder, _is_removed_first) for folder in LANCE_ENTRIES)
    return removed + remove_below(VERSIONS, _is_own)


def _remove_objects(
    location: str, storage_options: Mapping[str, str], folder: str, is_own: Callable[[str], bool]
) -> int:
    store: Any = object_store.open_store(location, storage_options)
    removed = 0
    for page in obstore.list(store, prefix=folder, chunk_size=_PAGE):
        paths = [entry["path"] for entry in page if is_own(entry["path"])]
        if paths:
            object_store.delete_objects(location, storage_options, paths)
        removed += len(paths)
    return removed


def _is_own(path: str) -> bool:
    return _OWN.fullmatch(path) is not None


def _is_lease(path: str) -> bool:
    return _is_own(path) and path.startswith(f"{LEASES}/")


def _is_removed_first(path: str) -> bool:
    return _is_own(path) and not (path.startswith(f"{VERSIONS}/") and version_of(path) is not None)


def _log_left(location: str, names: Sequence[str]) -> None:
    if names:
        log.warning(
            "%s is kept, since it contains files or links that are not Lance's: %s%s",
            location,
            ", ".join(map(on_one_line, names[:_NAMED])),
            ", …" if len(names) > _NAMED else "",
        )
