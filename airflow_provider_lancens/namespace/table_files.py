"""The files at a table's location, whoever wrote them, with the times that the storage gave them.

Paths here are relative to that location. Errors are the storage's 15, 16 and 17.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

import obstore
from obstore import exceptions
from obstore.store import LocalStore

from airflow_provider_lancens.namespace import storage

if TYPE_CHECKING:
    from obstore import ListResult, ObjectMeta
    from obstore.store import ObjectStore

_MISSING = (exceptions.NotFoundError, FileNotFoundError)
_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file."""

    path: str
    size: int
    """Bytes."""
    modified: datetime
    """In UTC, by the storage's clock."""
    e_tag: str | None = None


class TableFiles:
    """Lists, reads, writes and removes at a location, which need not exist yet. It pickles."""

    def __init__(self, location: str, storage_options: Mapping[str, str]) -> None:
        """Take the place; nothing is opened.

        Args:
            location: the table's root, as Lance takes it.
            storage_options: Lance's storage options for it.
        """
        self.location = location
        self._storage_options = storage_options

    def below(self, folder: str) -> list[StoredFile]:
        """The files right in a folder; one listing."""
        return [_stored(file) for file in self._listing(folder)["objects"]]

    def folders(self, folder: str) -> list[str]:
        """The folders right in a folder."""
        return list(self._listing(folder)["common_prefixes"])

    def look(self, path: str) -> StoredFile | None:
        """A file; None where it isn't there."""
        return self._found(lambda store: _stored(obstore.head(store, path)))

    def read(self, path: str) -> bytes | None:
        """The content of a file; None where it isn't there."""
        return self._found(lambda store: bytes(obstore.get(store, path).bytes()))

    def create(self, path: str, content: bytes) -> bool:
        """Make a file, unless there is one.

        Returns:
            Whether the file holds this content: false where another's was there first.
        """
        store = self._store()
        try:
            with storage.storage_errors(self.location, passing=(exceptions.AlreadyExistsError,)):
                # One request that the store refuses where the name is taken: no two writers can pass.
                obstore.put(store, path, content, mode="create", use_multipart=False)  # type: ignore[arg-type]
        except exceptions.AlreadyExistsError:
            # A retried request may meet its own success; no two writers have the same to say.
            return self.read(path) == content
        return True

    def put(self, path: str, content: bytes) -> None:
        """Write a small file, over what is there."""
        store = self._store()
        with storage.storage_errors(self.location):
            obstore.put(store, path, content, use_multipart=False)  # type: ignore[arg-type]

    def remove(self, *paths: str) -> None:
        """Remove files, on S3 by one request; those that are gone are no error."""
        store = self._store()
        if store is None:
            return
        # A local store stops at the first one that is gone.
        for batch in ([path] for path in paths) if isinstance(store, LocalStore) else (list(paths),):
            try:
                with storage.storage_errors(self.location, passing=_MISSING):
                    obstore.delete(store, batch)
            except _MISSING:
                continue

    def _found(self, take: Callable[[ObjectStore], _Answer]) -> _Answer | None:
        store = self._store()
        if store is None:
            return None
        try:
            with storage.storage_errors(self.location, passing=_MISSING):
                return take(store)
        except _MISSING:
            return None

    def _listing(self, folder: str) -> ListResult[Sequence[ObjectMeta]]:
        store = self._store()
        if store is None:
            return {"common_prefixes": [], "objects": []}
        with storage.storage_errors(self.location):
            return obstore.list_with_delimiter(store, prefix=folder)

    def _store(self) -> ObjectStore | None:
        return storage.open_store(self.location, self._storage_options)


def _stored(file: ObjectMeta) -> StoredFile:
    return StoredFile(file["path"], file["size"], file["last_modified"], file["e_tag"])
