"""The files below a data set's location, whoever wrote them, with the times that the storage gave them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import obstore
from obstore import exceptions

from airflow_provider_lancens.namespace import storage
from airflow_provider_lancens.namespace.manifests import Manifests
from airflow_provider_lancens.spark.dataset import DatasetRef

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_MISSING = (exceptions.NotFoundError, FileNotFoundError)


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file."""

    path: str
    """From the data set's location."""
    size: int
    """Bytes."""
    modified: datetime
    """In UTC, by the storage's clock."""


class FilesBelow:
    """Lists, reads, writes and removes; errors are the storage's 15, 16 and 17."""

    def __init__(self, dataset: DatasetRef) -> None:
        """Take the place; nothing is opened."""
        self.location = dataset.location
        self._options = dataset.storage_options
        self._manifests = Manifests(dataset.location, dataset.storage_options)

    def below(self, folder: str) -> list[StoredFile]:
        """The files right in a folder."""
        store = self._store()
        if store is None:
            return []
        with storage.storage_errors(self.location):
            found = obstore.list_with_delimiter(store, prefix=folder)["objects"]
        return [_stored(file) for file in found]

    def folders(self, folder: str) -> list[str]:
        """The folders right in a folder."""
        store = self._store()
        if store is None:
            return []
        with storage.storage_errors(self.location):
            return list(obstore.list_with_delimiter(store, prefix=folder)["common_prefixes"])

    def look(self, path: str) -> StoredFile | None:
        """A file; None where it isn't there."""
        store = self._store()
        if store is None:
            return None
        try:
            with storage.storage_errors(self.location, passing=_MISSING):
                return _stored(obstore.head(store, path))
        except _MISSING:
            return None

    def read(self, path: str) -> str | None:
        """A file's text; None where it isn't there."""
        content = self.content(path)
        return None if content is None else content.decode()

    def content(self, path: str) -> bytes | None:
        """A file's bytes; None where it isn't there."""
        return self._manifests.read(path)

    def put(self, path: str, text: str) -> None:
        """Write a small file, over what is there."""
        store = self._store()
        with storage.storage_errors(self.location):
            obstore.put(store, path, text.encode(), use_multipart=False)  # type: ignore[arg-type]

    def remove(self, *paths: str) -> None:
        """Remove files; those that are gone are no error."""
        self._manifests.remove(*paths)

    def _store(self) -> ObjectStore | None:
        return storage.open_store(self.location, self._options)


def _stored(file: Any) -> StoredFile:
    return StoredFile(file["path"], file["size"], file["last_modified"])
