"""Removing a table's data: the one place of the package that deletes files (promise 3).

Only Lance's own entries and ours go, below a location that holds ``_versions``. They go in the order of
`LANCE_ENTRIES`, ``_versions`` last: it is what marks the folder as Lance's, so a removal that was
interrupted is recognized and finished by the next one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import obstore
from obstore.store import LocalStore, ObjectStore

from airflow_provider_lancens.namespace import storage

LANCE_ENTRIES = (
    *("data", "_indices", "_deletions", "_transactions", "_refs", "tree"),
    *(storage.RECORDED, storage.VERSIONS),
)
_PAGE = 1000


def remove(location: str, storage_options: Mapping[str, str]) -> int:
    """Remove Lance's own files below a location; whatever else lies there stays.

    Args:
        location: the table's root.
        storage_options: Lance's storage options for it.

    Returns:
        How many files were removed; 0 where no ``_versions`` marks the location as Lance's.

    Raises:
        ServiceUnavailableError: (17), PermissionDeniedError: (15) the storage refused; run it again.
    """
    store = storage.open_store(location, storage_options)
    if store is None or storage.latest_version(location, storage_options) is None:
        return 0
    with storage.storage_errors(location):
        removed = sum(_remove_below(store, entry) for entry in LANCE_ENTRIES)
    if isinstance(store, LocalStore):
        _prune(Path(location))
    return removed


def _remove_below(store: ObjectStore, prefix: str) -> int:
    removed = 0
    for page in obstore.list(store, prefix=prefix, chunk_size=_PAGE):
        paths = [entry["path"] for entry in page]
        obstore.delete(store, paths)
        removed += len(paths)
    return removed


def _prune(root: Path) -> None:
    for entry in LANCE_ENTRIES:
        for folder in sorted((root / entry).glob("**/"), reverse=True):
            _remove_if_empty(folder)
    _remove_if_empty(root)


def _remove_if_empty(folder: Path) -> None:
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
