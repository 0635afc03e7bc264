"""One server per folder: a locked file in it that describes the lock's holder.

The server's JVM inherits the locked file, and this process closes its own copy. So the kernel
holds the lock exactly as long as the JVM runs: a file left behind by a dead server locks nothing.
"""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from airflow_provider_lancens.embedded.exceptions import FolderInUseError

LOCK_FILE = "metastore.lock"

# How long a server whose owner died may take to exit.
_ORPHAN_GRACE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Holder:
    """The server that holds a folder.

    Args:
        pid: The server's process.
        owner: The process that started it.
        uri: Where it serves; None while it is starting.
    """

    pid: int
    owner: int
    uri: str | None = None

    def __str__(self) -> str:
        doing = f"serving {self.uri}" if self.uri else "starting"
        return f"a metastore {doing} (pid {self.pid}, started by pid {self.owner})"


@contextmanager
def locked(folder: Path) -> Iterator[int]:
    """Lock the folder for the process that inherits the descriptor in the block.

    Args:
        folder: The server's data folder; it exists.

    Yields:
        The descriptor to hand to the server's process. Ours is closed at the end of the block.

    Raises:
        FolderInUseError: Another server holds the folder.
    """
    with (folder / LOCK_FILE).open("ab") as file:
        _acquire(file, folder)
        yield file.fileno()


def record_holder(folder: Path, holder: Holder) -> None:
    """Record the folder's holder; only to be called by the holder."""
    (folder / LOCK_FILE).write_text(json.dumps(asdict(holder)) + "\n")


def _acquire(file: BinaryIO, folder: Path) -> None:
    deadline = time.monotonic() + _ORPHAN_GRACE_SECONDS
    while not _try_lock(file):
        holder = _read_holder(folder)
        orphaned = holder is not None and not _alive(holder.owner)
        if not orphaned or time.monotonic() > deadline:
            raise FolderInUseError(
                f"{folder} is in use by {holder or 'another process'}: stop it, or choose another folder."
            )
        time.sleep(0.05)


def _try_lock(file: BinaryIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read_holder(folder: Path) -> Holder | None:
    try:
        return Holder(**json.loads((folder / LOCK_FILE).read_text()))
    except (ValueError, TypeError):  # just locked, and the holder isn't recorded yet
        return None


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it is alive, but another user's process
    return True
