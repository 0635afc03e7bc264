"""Files that are downloaded or built once for all test runs."""

import fcntl
import os
import tempfile
from collections.abc import Callable
from pathlib import Path


def made_once(name: str, make: Callable[[Path], None], lock: str = "lock") -> Path:
    """Return a folder in the user's cache; if it is missing, `make` creates its content atomically.

    Args:
        name: the folder's name.
        make: creates the folder at a path, and its content.
        lock: what is locked meanwhile; by default all that is made with Maven, whose cache doesn't support
            two processes.
    """
    folder = cached(name)
    if not folder.is_dir():
        _fill(folder, make, lock)
    return folder


def cached(name: str) -> Path:
    """Return the path of a folder that `made_once` makes."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base, "airflow-provider-lancens", "servers", name)


def _fill(folder: Path, make: Callable[[Path], None], lock_name: str) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with Path(folder.parent, lock_name).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.is_dir():
            return
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix="making-") as scratch:
            made = Path(scratch, "made")
            make(made)
            made.rename(folder)  # atomic, even if this process is killed
