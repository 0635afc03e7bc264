"""Files at a table's location, whichever client wrote them, with the storage's timestamps.

Paths are relative to that location. Each passes through `FilePath` before anything is read, written or
removed, and listings leave out other names. Errors are PermissionDeniedError (15), UnauthenticatedError (16)
and ServiceUnavailableError (17) of the storage, InvalidTableStateError (19) for such a name, and
InvalidInputError (13) for a file that isn't at the location, but behind a symbolic link there.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import obstore
from obstore import exceptions

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.locations import Location, is_local
from airflow_provider_lancens.namespace.storage import local_folder, object_store
from airflow_provider_lancens.namespace.storage.file_paths import FilePath, is_file_path
from airflow_provider_lancens.redaction import redact

if TYPE_CHECKING:
    from obstore import ListResult, ObjectMeta
    from obstore.store import ObjectStore

_MISSING = (exceptions.NotFoundError, FileNotFoundError)
_PAGE = 1000
_MAX_FILE = 256 * 2**20
"""Bytes of a file that is read as a whole: a manifest of a million fragments has fewer."""
_THREADS = 32
_CONFLICTS = 8
"""How many attempts to create a file the storage may refuse because of other requests."""
_CONFLICT_SECONDS = 0.05
T = TypeVar("T")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoredFile:
    """File at a table's location."""

    path: str
    size: int
    """Bytes."""
    modified: datetime
    """Time of the last change in UTC, by the storage's clock."""
    e_tag: str | None = None
    linked: bool = False
    """Whether the file is a symbolic link, and so not part of the table."""


class TableFiles:
    """List, read, write and remove files at a location, which need not exist yet. Picklable."""

    def __init__(
        self, location: str, storage_options: Mapping[str, str], *, is_optional: bool = False
    ) -> None:
        """Take the location; nothing is opened.

        Args:
            location: the table's root.
            storage_options: Lance's storage options for it.
            is_optional: whether to give up soon on a store that can't be reached, see `open_store`.

        Raises:
            InvalidInputError: (13) the location is invalid.
        """
        self.location = Location.of(location)
        self._storage_options = storage_options
        self._is_optional = is_optional

    @property
    def storage_options(self) -> Mapping[str, str]:
        """Lance's storage options for the location."""
        return self._storage_options

    @property
    def store_id(self) -> object_store.StoreId:
        """What identifies the store of the location."""
        return object_store.store_id(self.location, self._storage_options)

    @property
    def supports_bulk_deletes(self) -> bool:
        """Whether no bulk delete of this process was refused by the store."""
        return object_store.supports_bulk_deletes(self.location, self._storage_options)

    def create_location(self) -> None:
        """Create the folder of a local location, unless it exists; files are written only to one that does.

        A file that is written late doesn't bring the folder of a dropped table back.
        """
        if is_local(self.location):
            with object_store.storage_errors(self.location, self._storage_options):
                Path(self.location).mkdir(parents=True, exist_ok=True)

    def names_as_listed(self, folder: str) -> list[str]:
        """List the names of the files in a folder, in the order in which the store lists them."""
        return [file.path.rpartition("/")[2] for page in self.all_below(folder) for file in page]

    def below(self, folder: str) -> list[StoredFile]:
        """List the files directly in a folder, by one request."""
        files = _stored_files(self._listing(folder)["objects"])
        if not files or not is_local(self.location):
            return files
        links = local_folder.links_in(Path(self.location, folder))
        return [replace(file, linked=file.path.rpartition("/")[2] in links) for file in files]

    def all_below(self, folder: str) -> Iterator[list[StoredFile]]:
        """List the files at any depth of a folder, a page of at most a thousand at a time; without links."""
        prefix, store = self._folder(folder), self._store()
        if store is None:
            return
        links = local_folder.links_below(Path(self.location, folder)) if is_local(self.location) else ()
        with self._ignoring_missing():
            for page in obstore.list(store, prefix=prefix, chunk_size=_PAGE):
                files = _stored_files(page)
                yield [file for file in files if not self._is_behind(file.path, links)] if links else files

    def folders(self, folder: str) -> list[str]:
        """List the folders directly in a folder."""
        return [path for path in self._listing(folder)["common_prefixes"] if is_file_path(path)]

    def stat(self, path: str) -> StoredFile | None:
        """Return a file's attributes; None if it doesn't exist."""
        checked = self._unlinked(path)
        return self._found(lambda store: _stored(obstore.head(store, checked)))

    def stats(self, paths: Collection[str]) -> dict[str, StoredFile | None]:
        """Return the attributes of files by path, None for a missing file; by one request each."""
        if not paths:
            return {}
        with ThreadPoolExecutor(min(_THREADS, len(paths)), thread_name_prefix="lance-files") as pool:
            return dict(zip(paths, pool.map(self.stat, paths), strict=True))

    def missing(self, paths: Collection[str]) -> list[str]:
        """Return which of some files don't exist, by one request each."""
        return [path for path, file in self.stats(paths).items() if file is None]

    def read(self, path: str) -> bytes | None:
        """Return the content of a file, such as a manifest or a record; None if it doesn't exist.

        Raises:
            InvalidTableStateError: (19) it is longer than any of these needs to be.
        """
        checked = self._unlinked(path)

        def content(store: ObjectStore) -> bytes:
            response = obstore.get(store, checked)
            self.check_size(path, response.meta["size"])
            return bytes(response.bytes())

        return self._found(content)

    def check_size(self, path: str, size: int) -> None:
        """Check the size of a file before it is read as a whole, by this package or by Lance.

        Raises:
            InvalidTableStateError: (19) it is longer than a manifest or a record needs to be.
        """
        if size > _MAX_FILE:
            raise spec_errors.InvalidTableStateError(
                f"storage at {redact(self.location)}: file {path!r} has {size} bytes; expected at most "
                f"{_MAX_FILE}"
            )

    def read_range(self, path: str, start: int, end: int) -> bytes:
        """Return the bytes of a file from one position up to another, which exist."""
        with object_store.storage_errors(self.location, self._storage_options):
            store: Any = self._store()
            return bytes(obstore.get_range(store, path, start=start, end=end))

    def create(self, path: str, content: bytes) -> bool:
        """Create a file unless it exists.

        Returns:
            Whether the file has this content: false if another writer created it first.

        Raises:
            ServiceUnavailableError: (17) nothing was written, since other requests for the same file, which
                were not completed, were in progress at each attempt; or the storage failed.
        """

        def attempt() -> bool | None:
            if self.create_once(path, content):
                return True
            # A retried request may find the file that it created itself: its content is unique to its writer.
            existing = self.read(path)
            return None if existing is None else existing == content

        return self.repeat_after_conflicts(path, attempt)

    def repeat_after_conflicts(self, path: str, attempt: Callable[[], bool | None]) -> bool:
        """Repeat the creation of a file, with pauses, while the storage refuses it although it doesn't exist.

        S3 does so because of another request in progress, which has not stored anything.

        Args:
            path: the file.
            attempt: creates the file once; returns None if the storage refused it for no lasting reason.

        Returns:
            What the last attempt returned.

        Raises:
            ServiceUnavailableError: (17) all attempts were refused.
        """
        for number in range(_CONFLICTS):
            if number:
                time.sleep(_CONFLICT_SECONDS * 2 ** (number - 1))
            if (created := attempt()) is not None:
                return created
        raise spec_errors.ServiceUnavailableError(
            f"storage at {redact(self.location)}: {path} could not be created, since the storage reported a "
            f"conflict with other requests {_CONFLICTS} times; nothing was written, run it again"
        )

    def create_once(self, path: str, content: bytes) -> bool:
        """Create a file by one request; return false if the storage refused it because the file exists."""
        checked, store = self._unlinked(path), self._store()
        try:
            with object_store.storage_errors(
                self.location, self._storage_options, passing=(exceptions.AlreadyExistsError,)
            ):
                # One request, which the store refuses if the name is taken: only one writer can succeed.
                obstore.put(store, checked, content, mode="create", use_multipart=False)  # type: ignore[arg-type]
        except exceptions.AlreadyExistsError:
            return False
        return True

    def put(self, path: str, content: bytes) -> None:
        """Write a small file, overwriting an existing one."""
        checked, store = self._unlinked(path), self._store()
        with object_store.storage_errors(self.location, self._storage_options):
            obstore.put(store, checked, content, use_multipart=False)  # type: ignore[arg-type]

    def remove(self, *paths: str) -> None:
        """Remove files, on S3 by one request; missing files are no error, and links are kept."""
        checked = [self._path(path) for path in paths]
        if is_local(self.location):
            with object_store.storage_errors(self.location):
                for path in checked:
                    local_folder.remove_file(Path(self.location), path)
            return
        object_store.delete_objects(self.location, self._storage_options, checked)

    def remove_outdated(self, *paths: str) -> None:
        """Remove files that nothing needs any more; if that fails, they are left, with a warning.

        No reader depends on this removal, and it never decides over the call that makes it.
        """
        try:
            self.remove(*paths)
        except spec_errors.LanceNamespaceError as error:
            log.warning("Files that nothing needs any more are left behind, such as %s: %s", paths[0], error)

    def _found(self, take: Callable[[ObjectStore], T]) -> T | None:
        store = self._store()
        if store is None:
            return None
        try:
            with object_store.storage_errors(self.location, self._storage_options, passing=_MISSING):
                return take(store)
        except _MISSING:
            return None

    @contextlib.contextmanager
    def _ignoring_missing(self) -> Iterator[None]:
        with (
            contextlib.suppress(*_MISSING),
            object_store.storage_errors(self.location, self._storage_options, passing=_MISSING),
        ):
            yield

    def _listing(self, folder: str) -> ListResult[Sequence[ObjectMeta]]:
        prefix, store = self._folder(folder), self._store()
        if store is None:
            return {"common_prefixes": [], "objects": []}
        with object_store.storage_errors(self.location, self._storage_options):
            return obstore.list_with_delimiter(store, prefix=prefix)

    def _folder(self, folder: str) -> str:
        if not folder:
            return folder  # the location itself
        checked = self._path(folder)
        if is_local(self.location):
            local_folder.check_folder(Path(self.location), checked)
        return checked

    def _path(self, path: str) -> FilePath:
        return FilePath.of(path, self.location)

    def _unlinked(self, path: str) -> FilePath:
        """Return the path of a file that is to be read or created.

        Raises:
            InvalidInputError: (13) it is elsewhere, by a symbolic link.
        """
        checked = self._path(path)
        if is_local(self.location):
            local_folder.check_path(Path(self.location), checked)
        return checked

    def _is_behind(self, path: str, links: Collection[str]) -> bool:
        whole = Path(self.location, path)
        return any(str(folder) in links for folder in (whole, *whole.parents))

    def _store(self) -> ObjectStore | None:
        return object_store.open_store(self.location, self._storage_options, is_optional=self._is_optional)


def _stored_files(files: Sequence[ObjectMeta]) -> list[StoredFile]:
    """Return the listed files, without names that no writer of a table gives."""
    return [_stored(file) for file in files if is_file_path(file["path"])]


def _stored(file: ObjectMeta) -> StoredFile:
    return StoredFile(file["path"], file["size"], file["last_modified"], file["e_tag"])
