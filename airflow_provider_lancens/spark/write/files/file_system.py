"""Files on any storage that Lance supports: listed by the driver, opened by the executors.

They are read with Lance's own object store library, so the same storage options work for both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import NamedTuple

import obstore
import pyarrow as pa

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.locations import check_location, is_local, normalize
from airflow_provider_lancens.namespace.storage.object_store import open_store, storage_errors

_WILD = re.compile(r"[*?\[]")
_CLASS = r"\[!?[^\]]+\]"
_PART = 8 * 1024 * 1024
"""Bytes of one request; larger reads are split into parallel requests."""
_PARALLEL = 4
_CODECS = {"gz": "gzip", "bz2": "bz2", "zst": "zstd"}
"""Arrow's codecs by file extension."""


class SourceFile(NamedTuple):
    """A file, and the state of its content."""

    location: str
    bytes: int
    state: str
    """The store's ETag of its content, or the time of its last change."""
    base: str
    """The part of the path that was given: folders below it may name values of columns."""


def find_files(paths: Sequence[str], options: Mapping[str, str]) -> list[SourceFile]:
    """Return all files that the paths match, each once, in the order of the paths and then by name.

    Args:
        paths: files, folders or patterns.
        options: Lance's storage options.

    Raises:
        InvalidInputError: (13) a path is invalid, or there is no file.
        ServiceUnavailableError: (17) the storage returned an unexpected response, or none.
    """
    found: dict[str, SourceFile] = {}
    for number, path in enumerate(paths):
        location = normalize(check_location(path, f"paths[{number}]", of_table=False))
        files = list(_matching(location, options) if _WILD.search(location) else _at(location, options))
        if not files:
            raise spec_errors.InvalidInputError(f"paths[{number}]: no file found at {path}")
        found.update((file.location, file) for file in sorted(files))
    return list(found.values())


@contextmanager
def open_file(file: SourceFile, options: Mapping[str, str]) -> Iterator[pa.NativeFile]:
    """Open a file for reading; a file compressed as a whole is decompressed while it is read.

    Raises:
        ConcurrentModificationError: (14) it was changed or removed since it was listed.
    """
    local = is_local(file.location)
    if local:
        check_unchanged(file, options)
    opened = pa.OSFile(file.location) if local else pa.PythonFile(_RemoteFile(file, options), mode="r")
    codec = _CODECS.get(file.location.rpartition(".")[2])
    try:
        with opened if codec is None else pa.CompressedInputStream(opened, codec) as stream:
            yield stream
    except (pa.ArrowException, OSError, ValueError):
        check_unchanged(file, options)  # which explains whatever was found in it
        raise
    if local:  # each part of a remote file comes with its state
        check_unchanged(file, options)


def check_unchanged(file: SourceFile, options: Mapping[str, str]) -> None:
    """Check that a file hasn't changed since it was listed.

    Raises:
        ConcurrentModificationError: (14) it was changed or removed.
    """
    folder, _, name = file.location.rpartition("/")
    store = open_store(folder or "/", options)
    try:
        with storage_errors(file.location, options, passing=(FileNotFoundError,)):
            found = None if store is None else obstore.head(store, name)
    except FileNotFoundError:
        found = None
    if found is None:
        raise _changed(file, "it is gone")
    _check_state(file, found)


def _check_state(file: SourceFile, found: obstore.ObjectMeta) -> None:
    state = _state(file.location, found)
    if found["size"] != file.bytes:
        raise _changed(file, f"it has {found['size']} bytes, not {file.bytes}")
    if state != file.state:
        raise _changed(file, f"its ETag or time of change is {state}, not {file.state}")


def _changed(file: SourceFile, how: str) -> spec_errors.ConcurrentModificationError:
    return spec_errors.ConcurrentModificationError(
        f"file {file.location}: it was changed after the write was planned: {how}. Run it again, once no "
        "one writes to the file any more"
    )


def _at(location: str, options: Mapping[str, str]) -> Iterator[SourceFile]:
    folder, _, name = location.rpartition("/")
    store = open_store(folder or "/", options)
    if store is None:
        return
    try:
        with storage_errors(location, options, passing=(FileNotFoundError,)):
            yield _stored(folder, obstore.head(store, name), folder)
    except FileNotFoundError:
        yield from _below(location, options)


def _below(folder: str, options: Mapping[str, str]) -> Iterator[SourceFile]:
    store = open_store(folder, options)
    if store is None:
        return
    with storage_errors(folder, options):
        for page in obstore.list(store):
            yield from (_stored(folder, entry, folder) for entry in page if not _hidden(entry["path"]))


def _matching(location: str, options: Mapping[str, str]) -> Iterator[SourceFile]:
    folder = _WILD.split(location, maxsplit=1)[0].rpartition("/")[0]
    pattern = location.removeprefix(f"{folder}/")
    try:
        wanted = re.compile(_as_regex(pattern))
    except re.error as error:
        raise spec_errors.InvalidInputError(f"paths: {pattern!r} isn't a pattern: {error}") from error
    for file in _below(folder or "/", options):
        if wanted.fullmatch(file.location.removeprefix(f"{folder}/")):
            yield file


def _as_regex(pattern: str) -> str:
    meanings = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.split(rf"(\*\*/|\*\*|\*|\?|{_CLASS})", pattern)
    return "".join(
        _class(part) if re.fullmatch(_CLASS, part) else meanings.get(part) or re.escape(part)
        for part in parts
    )


def _class(part: str) -> str:
    characters = part[1:-1].replace("\\", "\\\\").replace("[", "\\[")
    return f"[^/{characters[1:]}]" if characters[0] in "!^" else f"[{characters}]"


def _hidden(path: str) -> bool:
    # As in Spark, `_day=1` is a folder of rows whose column is named _day.
    return path.endswith("/") or any(
        part.startswith(".") or (part.startswith("_") and "=" not in part) for part in path.split("/")
    )


def _stored(folder: str, entry: obstore.ObjectMeta, base: str) -> SourceFile:
    location = f"{folder}/{entry['path']}"
    return SourceFile(location, entry["size"], _state(location, entry), base)


def _state(location: str, entry: obstore.ObjectMeta) -> str:
    changed = entry["last_modified"]
    if is_local(location):
        # Its ETag would contain its inode, which doesn't depend on its content.
        return changed.isoformat()
    # Some stores quote the ETag only in some of their replies, and have the fraction of a second in some.
    tag = (entry["e_tag"] or "").removeprefix("W/").strip('"')
    return tag or changed.replace(microsecond=0).isoformat()


class _RemoteFile:
    """A Python file object for Arrow, which splits large reads into parallel requests."""

    def __init__(self, file: SourceFile, options: Mapping[str, str]) -> None:
        self._folder, _, self._name = file.location.rpartition("/")
        self._file, self._size, self._at = file, file.bytes, 0
        self._options = options
        self.closed = False

    def read(self, count: int = -1) -> bytes:
        end = self._size if count < 0 else min(self._at + count, self._size)
        starts = range(self._at, end, _PART)
        self._at = max(self._at, end)
        with storage_errors(self._file.location, self._options, passing=(FileNotFoundError,)):
            if len(starts) <= 1:
                return b"".join(self._part(start, end) for start in starts)
            with ThreadPoolExecutor(_PARALLEL) as pool:
                return b"".join(pool.map(lambda start: self._part(start, end), starts))

    def _part(self, start: int, end: int) -> bytes:
        # Opened for each part: the credentials may have been renewed since. Stores are cached.
        store = open_store(self._folder, self._options)
        if store is None:
            raise spec_errors.ServiceUnavailableError(f"storage at {self._folder} no longer exists")
        answer = obstore.get(store, self._name, options={"range": (start, min(start + _PART, end))})
        _check_state(self._file, answer.meta)
        return bytes(answer.bytes())

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def close(self) -> None:
        self.closed = True

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True
