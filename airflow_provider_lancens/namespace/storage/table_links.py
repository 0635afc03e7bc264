"""Symbolic links below a local table's location: no dataset is opened or written through one.

Another client that may write into a table's folder can put a link there, to files that only the readers of
the table may read, or only its writers change. The location itself, and the folders above it, may be links,
which only an administrator can create.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from itertools import chain
from pathlib import Path

from airflow_provider_lancens.namespace.locations import Location, is_local, normalize, readings
from airflow_provider_lancens.namespace.storage import local_folder, object_store
from airflow_provider_lancens.namespace.storage.file_paths import is_file_path
from airflow_provider_lancens.namespace.storage.object_store import BRANCHES, RECORDED
from airflow_provider_lancens.namespace.storage.purge import LANCE_ENTRIES

_SEARCHED = tuple(folder for folder in LANCE_ENTRIES if folder not in (BRANCHES, RECORDED))
"""Folders from which Lance itself reads. Branches are searched when they are opened, and this package's own
files are checked one by one, see `TableFiles`."""
_MANY = 1000
"""Number of entries from which on a table isn't searched each time it is opened."""
_PAUSE = 10
"""Pause before this process searches such a table again, as a multiple of the search's duration."""
_MOST_TABLES = 1000

_searched_until: dict[str, float] = {}


def check_links(location: str, branch: str | None = None) -> None:
    """Check that no symbolic link leads out of a table, before its dataset is opened or written.

    On an object store it does nothing. On the local file system it lists Lance's folders of the table; of one
    with many files only from time to time, so that most of the time isn't spent on it: a link that is put
    there after the check isn't noticed anyway.

    Args:
        location: the table's root.
        branch: the branch that is opened or written; None for main.

    Raises:
        InvalidInputError: (13) a folder of the table is a symbolic link, or a file is a link that leads out
            of the table.
        PermissionDeniedError: (15) a folder can't be listed.
    """
    location = Location.of(location)
    if not is_local(location):
        return
    root = Path(location)
    with object_store.storage_errors(location):
        _check_table(root, root)
        if branch is not None and is_file_path(branch):  # Lance refuses other names
            place = f"{BRANCHES}/{branch}"
            local_folder.check_folder(root, place)
            _check_table(root / place, root)


def check_links_at(base: str, files: Collection[str] | None = None) -> None:
    """Check the same of another dataset, or of a folder with data files, that a dataset refers to.

    Args:
        base: its location, as another client wrote it.
        files: the files that are referred to, relative to it, if it is no dataset's.

    Raises:
        InvalidInputError: (13) as `check_links`.
        PermissionDeniedError: (15) as `check_links`.
    """
    if not is_local(base):
        return
    for root in map(Path, readings(normalize(base))):  # Lance decodes URLs
        if files is not None:
            for path in files:
                local_folder.check_file(root, root / path)
        else:
            with object_store.storage_errors(str(root)):
                _check_table(root, root)


def _check_table(place: Path, root: Path) -> None:
    """Check a dataset, which is the table's at `root`, or a branch of it."""
    key, began = str(place), time.monotonic()
    folders = [entry for entry in local_folder.entries_in(key) if entry.name in LANCE_ENTRIES]
    for entry in folders:
        if entry.is_symlink():
            local_folder.check_folder(place, entry.name)
    if began < _searched_until.get(key, 0.0):
        return
    searched = [folder.path for folder in folders if folder.name in _SEARCHED]
    if _searched(searched, root) >= _MANY:
        if len(_searched_until) >= _MOST_TABLES:
            _searched_until.clear()
        ended = time.monotonic()
        _searched_until[key] = ended + _PAUSE * (ended - began)


def _searched(folders: Iterable[str], root: Path) -> int:
    """Check the files in these folders; return how many there are."""
    count = 0
    for entry in chain.from_iterable(map(local_folder.walk_entries, folders)):
        count += 1
        if entry.is_symlink():
            local_folder.check_file(root, Path(entry.path))
    return count
