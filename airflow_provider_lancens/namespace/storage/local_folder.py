"""Local files without symbolic links: none is deleted, read or created behind one.

Every step of a deletion uses the descriptor of an open directory, and no link is opened as one: if a link is
put into the tree between the check and the deletion, at most that link is lost, and nothing behind it. What
is read or created is only checked before.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from urllib.parse import unquote

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.storage.file_paths import FilePath
from airflow_provider_lancens.redaction import on_one_line

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


@contextlib.contextmanager
def open_folder(folder: str | Path, parent: int | None = None) -> Iterator[int]:
    """Open a folder and yield its descriptor.

    Args:
        folder: its path; links above its last part are followed.
        parent: the descriptor of the folder that `folder` is relative to.

    Raises:
        FileNotFoundError: it doesn't exist.
        NotADirectoryError: it is a link, or a file.
    """
    descriptor = os.open(folder, _FOLDER, dir_fd=parent)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def files_in(root: int, folder: str) -> list[str]:
    """List the regular files directly in a folder of an open one; empty if it is a link or missing."""
    with (
        contextlib.suppress(FileNotFoundError, NotADirectoryError),
        open_folder(folder, root) as descriptor,
        os.scandir(descriptor) as entries,
    ):
        return [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
    return []


def names_in(folder: Path) -> list[str]:
    """List the names of all entries directly in a folder; empty if it is missing.

    Unlike a listing by the object store, it doesn't read each file's attributes.
    """
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        return os.listdir(folder)  # noqa: PTH208 names alone: there may be 100,000
    return []


def remove_below(root: int, folder: str, is_own: Callable[[str], bool]) -> int:
    """Remove files at any depth of a folder, then the folders that are empty.

    Args:
        root: the descriptor of the folder above.
        folder: its name in `root`.
        is_own: given a regular file's path from `root`, whether to remove it.

    Returns:
        The number of removed files.
    """
    removed = 0
    if not _is_folder(folder, root):
        return removed
    for path, folders, names, descriptor in os.fwalk(folder, topdown=False, onerror=_raise, dir_fd=root):
        for name in names:
            if is_own(f"{path}/{name}") and _is_file(name, descriptor):
                removed += _unlink(name, descriptor)
        for name in folders:
            remove_if_empty(name, descriptor)
    remove_if_empty(folder, root)
    return removed


def remove_in(root: int, names: Collection[str]) -> int:
    """Remove regular files directly in an open folder, and return how many there were."""
    return sum(_unlink(name, root) for name in names if _is_file(name, root))


def remove_file(root: Path, path: FilePath) -> None:
    """Remove a file below a folder, and the folders in between that are empty then.

    A link, or a file behind one, is kept; a missing file isn't an error.
    """
    *folders, name = path.split("/")
    with contextlib.ExitStack() as stack:
        try:
            parents = [stack.enter_context(open_folder(root.resolve()))]
            for folder in folders:
                parents.append(stack.enter_context(open_folder(folder, parents[-1])))
        except (FileNotFoundError, NotADirectoryError):
            return
        for spelling in dict.fromkeys((name, unquote(name))):  # obstore percent-encodes some characters
            if _is_file(spelling, parents[-1]) and _unlink(spelling, parents[-1]):
                break
        for folder, parent in zip(reversed(folders), reversed(parents[:-1]), strict=True):
            remove_if_empty(folder, parent)


def check_folder(root: Path, folder: str) -> None:
    """Check that neither a folder of a table, nor one between, is a symbolic link.

    Args:
        root: the table's location; links above it don't count.
        folder: its path from there; it need not exist.

    Raises:
        InvalidInputError: (13) one is, so that another place would be read or written.
    """
    path = root
    for name in folder.split("/"):
        path /= name
        if path.is_symlink():
            raise _linked(path)


def check_file(root: Path, path: Path) -> None:
    """Check that a file of a table is not a symbolic link that leads out of it.

    Args:
        root: the table's location.
        path: the file's path, below `root`.

    Raises:
        InvalidInputError: (13) it is.
    """
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root)):  # loops are allowed
        raise _linked(path)


def check_path(root: Path, path: FilePath) -> None:
    """Check that a file of a table is not elsewhere, by a symbolic link below the table's location.

    Raises:
        InvalidInputError: (13) it is.
    """
    folder, _, _name = path.rpartition("/")
    if folder:
        check_folder(root, folder)
    whole = root / path
    if whole.is_symlink():
        check_file(root, whole)


def _linked(path: Path) -> spec_errors.LanceNamespaceError:
    return spec_errors.InvalidInputError(
        f"{on_one_line(str(path))} is a symbolic link below a table's location, through which nothing is "
        "read or written: move what it leads to into the table's folder, and remove the link"
    )


def links_in(folder: Path) -> frozenset[str]:
    """List the names of the symbolic links directly in a folder."""
    return frozenset(entry.name for entry in entries_in(folder) if entry.is_symlink())


def links_below(folder: Path) -> frozenset[str]:
    """List the paths of the symbolic links at any depth of a folder."""
    return frozenset(entry.path for entry in walk_entries(folder) if entry.is_symlink())


def has_hard_links(folder: str) -> bool:
    """Return whether the file system of a folder has hard links; True if that can't be found out."""
    existing = next(path for path in (Path(folder), *Path(folder).parents) if path.is_dir())
    try:
        with tempfile.NamedTemporaryFile(dir=existing, prefix=".links-") as file:
            link = f"{file.name}-2"
            try:
                os.link(file.name, link)
            except OSError:
                return False
            Path(link).unlink()
    except OSError:
        return True
    return True


def entries_in(folder: str | Path) -> list[os.DirEntry[str]]:
    """List the entries directly in a folder; empty if it is missing."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        return list(entries)
    return []


def walk_entries(folder: str | Path) -> Iterator[os.DirEntry[str]]:
    """Iterate over all entries at any depth of a folder, without following links; empty if it is missing."""
    for entry in entries_in(folder):
        yield entry
        if entry.is_dir(follow_symlinks=False):
            yield from walk_entries(entry.path)


def remove_if_empty(name: str | Path, parent: int | None = None) -> None:
    """Remove a folder if it is empty."""
    with contextlib.suppress(OSError):  # not empty, a link, missing, or not permitted: it stays
        os.rmdir(name, dir_fd=parent)


def _is_file(name: str, parent: int) -> bool:
    try:
        return stat.S_ISREG(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def _is_folder(name: str, parent: int) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def _unlink(name: str, parent: int) -> bool:
    try:
        os.unlink(name, dir_fd=parent)
    except FileNotFoundError:
        return False
    return True


def _raise(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):  # another drop of the same table has removed it
        raise error
