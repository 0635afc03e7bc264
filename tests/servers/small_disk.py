"""A file system of a few megabytes that can be filled, emptied, and mounted read-only."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


class SmallDisk:
    """A mounted tmpfs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ballast = path / "ballast"

    def fill(self) -> None:
        """Fill it completely."""
        with self._ballast.open("ab", buffering=0) as file:
            for size in (64 * 1024, 4096, 1):
                try:
                    while True:
                        file.write(b"x" * size)
                except OSError:
                    continue

    def make_room(self) -> None:
        """Remove what `fill` wrote."""
        self._ballast.unlink()

    def mount_read_only(self) -> None:
        _mount("-o", "remount,ro", str(self.path))

    def mount_writable(self) -> None:
        _mount("-o", "remount,rw", str(self.path))


@contextmanager
def small_disk(path: Path, megabytes: int) -> Iterator[SmallDisk]:
    """Mount one at a path; the test is skipped without the permission to mount."""
    path.mkdir()
    try:
        _mount("-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(path))
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"mounting a file system is not allowed here: {error}")
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True, capture_output=True)
