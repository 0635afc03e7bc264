"""Files on any storage that Lance supports: listed by the driver, opened by the executors.

They are read with Lance's own object store library, so the same storage options work for both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import obstore
import pyarrow as pa

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.locations import check_location, is_local, normalize
from airflow_provider_lancens.namespace.storage.object_store import open_store, storage_errors

_WILD = re.compile(r"[*?\[]")
_PART = 8 * 1024 * 1024
"""Bytes of one request; larger reads are split into parallel requests."""
_PARALLEL = 4
_CODECS = {"gz": "gzip", "bz2": "bz2", "zst": "zstd"}
"""By file extension."""


class SourceFile(NamedTuple):
    """A file, and the state of its content."""

    location: str
    bytes: int
    state: str
    """The store's ETag of its content, or the time of its last change."""


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
        location = normalize(check_location(path, f"paths[{number}]"))
        files = list(_matching(location, options) if _WILD.search(location) else _at(location, options))
        if not files:
            raise spec_errors.InvalidInputError(f"paths[{number}]: no file found at {path}")
        found.update((file.location, file) for file in sorted(files))
    return list(found.values())


def open_file(location: str, size: int, options: Mapping[str, str]) -> pa.NativeFile:
    """Open a file for reading; a file compressed as a whole is decompressed while it is read."""
    local = is_local(location)
    file = pa.OSFile(location) if local else pa.PythonFile(_RemoteFile(location, size, options), mode="r")
    codec = _CODECS.get(location.rpartition(".")[2])
    return file if codec is None else pa.CompressedInputStream(file, codec)


def _at(location: str, options: Mapping[str, str]) -> Iterator[SourceFile]:
    folder, _, name = location.rpartition("/")
    store = open_store(folder or "/", options)
    if store is None:
        return
    try:
        with storage_errors(location, options, passing=(FileNotFoundError,)):
            yield _stored(folder, obstore.head(store, name))
    except FileNotFoundError:
        yield from _below(location, options)


def _below(folder: str, options: Mapping[str, str]) -> Iterator[SourceFile]:
    store = open_store(folder, options)
    if store is None:
        return
    with storage_errors(folder, options):
        for page in obstore.list(store):
            yield from (_stored(folder, entry) for entry in page if not _hidden(entry["path"]))


def _matching(location: str, options: Mapping[str, str]) -> Iterator[SourceFile]:
    folder = _WILD.split(location, maxsplit=1)[0].rpartition("/")[0]
    wanted = re.compile(_as_regex(location.removeprefix(f"{folder}/")))
    for file in _below(folder or "/", options):
        if wanted.fullmatch(file.location.removeprefix(f"{folder}/")):
            yield file


def _as_regex(pattern: str) -> str:
    meanings = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*\*/|\*\*|\*|\?|\[!?[^\]]+\])", pattern)
    return "".join(
        part.replace("[!", "[^") if part.startswith("[") else meanings.get(part) or re.escape(part)
        for part in parts
    )


def _hidden(path: str) -> bool:
    return path.endswith("/") or any(part[:1] in ("_", ".") for part in path.split("/"))


def _stored(folder: str, entry: obstore.ObjectMeta) -> SourceFile:
    location = f"{folder}/{entry['path']}"
    # A local file's ETag would contain its inode, which doesn't depend on its content.
    state = None if is_local(location) else entry["e_tag"]
    return SourceFile(location, entry["size"], state or entry["last_modified"].isoformat())


class _RemoteFile:
    """A Python file object for Arrow, which splits large reads into parallel requests."""

    def __init__(self, location: str, size: int, options: Mapping[str, str]) -> None:
        folder, _, self._name = location.rpartition("/")
        self._folder, self._location, self._size, self._at = folder, location, size, 0
        self._options = options
        self.closed = False

    def read(self, count: int = -1) -> bytes:
        end = self._size if count < 0 else min(self._at + count, self._size)
        starts = range(self._at, end, _PART)
        self._at = max(self._at, end)
        with storage_errors(self._location, self._options):
            if len(starts) <= 1:
                return b"".join(self._part(start, end) for start in starts)
            with ThreadPoolExecutor(_PARALLEL) as pool:
                return b"".join(pool.map(lambda start: self._part(start, end), starts))

    def _part(self, start: int, end: int) -> bytes:
        # Opened for each part: the credentials may have been renewed since. Stores are cached.
        store = open_store(self._folder, self._options)
        if store is None:
            raise spec_errors.ServiceUnavailableError(f"storage at {self._folder} no longer exists")
        return bytes(obstore.get_range(store, self._name, start=start, end=min(start + _PART, end)))

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
