"""Files that are downloaded or built once for all test runs."""

import fcntl
import os
import tempfile
from collections.abc import Callable
from pathlib import Path


def made_once(name: str, make: Callable[[Path], None]) -> Path:
    """Return a folder in the user's cache; if it is missing, `make` creates its content atomically."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base, "airflow-provider-lancens", "servers", name)
    if not folder.is_dir():
        _fill(folder, make)
    return folder


def _fill(folder: Path, make: Callable[[Path], None]) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with Path(folder.parent, "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # Maven's cache doesn't support two processes
        if folder.is_dir():
            return
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix="making-") as scratch:
            made = Path(scratch, "made")
            make(made)
            made.rename(folder)  # atomic, even if this process is killed
