"""The manifests of one data set: listed, read, created by put-if-absent, removed.

The file name of a version exists once, so whoever creates it first has made that version, on every
store that Lance reaches. Paths here are relative to the data set's location.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import obstore
from obstore import exceptions
from obstore.store import LocalStore

from airflow_provider_lancens.namespace import storage
from airflow_provider_lancens.namespace.locations import is_local, normalize
from airflow_provider_lancens.namespace.storage import VERSIONS, manifest_names, version_of

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_MISSING = (exceptions.NotFoundError, FileNotFoundError)


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest's file."""

    version: int
    path: str
    """As Lance counts it: from the root of the file system, or of the bucket."""
    size: int | None = None
    """Bytes."""
    e_tag: str | None = None
    modified_millis: int | None = None
    """Milliseconds since 1970."""


class Manifests:
    """The manifests of the data set at a location, which need not exist yet."""

    def __init__(self, location: str, storage_options: Mapping[str, str]) -> None:
        """Take the place; nothing is opened.

        Args:
            location: the table's root, as Lance takes it.
            storage_options: Lance's storage options for it.
        """
        self.location = location
        self._storage_options = storage_options

    def newest(self) -> int | None:
        """The newest version that has its final name; None where there is none."""
        return storage.latest_version(self.location, self._storage_options)

    def all(self) -> dict[int, Manifest]:
        """Every version that has its final name; one listing."""
        store = self._store()
        if store is None:
            return {}
        with storage.storage_errors(self.location):
            files = obstore.list_with_delimiter(store, prefix=VERSIONS)["objects"]
        found = {version: file for file in files if (version := version_of(file["path"])) is not None}
        return {version: self._manifest(version, file) for version, file in found.items()}

    def find(self, version: int) -> Manifest | None:
        """A version's manifest, if it has its final name; one request, two in the V1 naming scheme."""
        for name in manifest_names(version):
            if found := self.look(f"{VERSIONS}/{name}", version):
                return found
        return None

    def look(self, path: str, version: int) -> Manifest | None:
        """The manifest in a file; None where it isn't there."""
        store = self._store()
        if store is None:
            return None
        try:
            with storage.storage_errors(self.location, passing=_MISSING):
                return self._manifest(version, obstore.head(store, path))
        except _MISSING:
            return None

    def read(self, path: str) -> bytes | None:
        """The content of a file; None where it isn't there."""
        store = self._store()
        if store is None:
            return None
        try:
            with storage.storage_errors(self.location, passing=_MISSING):
                return bytes(obstore.get(store, path).bytes())
        except _MISSING:
            return None

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
            # A retried request may meet its own success; a manifest names its own transaction.
            return self.read(path) == content
        return True

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

    def at(self, path: str, version: int, size: int | None = None) -> Manifest:
        """The manifest in a file that isn't looked at."""
        root = normalize(self.location) if is_local(self.location) else urlsplit(self.location).path
        parts = [part for part in f"{root}/{path}".split("/") if part]  # as Lance does, without empty ones
        return Manifest(version, "/".join(parts), size)

    def _manifest(self, version: int, file: Any) -> Manifest:
        modified = int(file["last_modified"].timestamp() * 1000)
        return replace(
            self.at(file["path"], version, file["size"]), e_tag=file["e_tag"], modified_millis=modified
        )

    def _store(self) -> ObjectStore | None:
        return storage.open_store(self.location, self._storage_options)


def staged_name(manifest_path: str) -> str:
    """The name of a staged manifest's file in ``_versions``, from its path as Lance gives it."""
    return manifest_path.rpartition("/")[2]
