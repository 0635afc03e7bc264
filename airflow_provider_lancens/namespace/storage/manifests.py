"""Manifests of one dataset: listed, found, and created by put-if-absent.

The file name of a version is unique, so the writer that creates it first has made that version, on every
store that Lance supports.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

from airflow_provider_lancens.namespace.locations import is_local
from airflow_provider_lancens.namespace.storage import object_store
from airflow_provider_lancens.namespace.storage.object_store import VERSIONS, manifest_names, version_of
from airflow_provider_lancens.namespace.storage.table_files import StoredFile, TableFiles

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Manifest:
    """Manifest file of a version."""

    version: int
    path: str
    """Path as Lance uses it: relative to the root of the file system, or of the bucket."""
    size: int | None = None
    """Bytes."""
    e_tag: str | None = None
    modified_millis: int | None = None
    """Milliseconds since 1970."""

    @property
    def modified(self) -> datetime | None:
        """The time at which the storage got it, by its clock; None if that wasn't asked for."""
        return None if self.modified_millis is None else _EPOCH + timedelta(milliseconds=self.modified_millis)


class Manifests(TableFiles):
    """Files of a dataset, viewed as its versions."""

    def newest(self) -> int | None:
        """Return the newest version that has its final name; None if there is none."""
        return object_store.latest_version(
            self.location, self._storage_options, is_optional=self._is_optional
        )

    def newest_manifest(self) -> Manifest | None:
        """Return the newest version's manifest, by the same one listing; without its attributes."""
        path = object_store.newest_manifest(self.location, self._storage_options)
        return None if path is None else self.at(path, version_of(path) or 0)

    def all(self) -> dict[int, Manifest]:
        """Return every version that has its final name, by one listing."""
        versions = ((version_of(file.path), file) for file in self.below(VERSIONS))
        return {version: self._manifest(version, file) for version, file in versions if version is not None}

    def find(self, version: int) -> Manifest | None:
        """Find a version's manifest under its final name; one request, two in the V1 naming scheme."""
        for name in manifest_names(version):
            if found := self.find_at(f"{VERSIONS}/{name}", version):
                return found
        return None

    def read_version(self, version: int) -> bytes | None:
        """Read a version's manifest; None if it doesn't have its final name."""
        contents = (self.read(f"{VERSIONS}/{name}") for name in manifest_names(version))
        return next((content for content in contents if content is not None), None)

    def find_at(self, path: str, version: int) -> Manifest | None:
        """Return the manifest of a version in a given file; None if the file doesn't exist.

        Raises:
            InvalidTableStateError: (19) it is so large that Lance isn't to read it.
        """
        file = self.stat(path)
        if file is None:
            return None
        self.check_size(path, file.size)
        return self._manifest(version, file)

    def at(self, path: str, version: int, size: int | None = None) -> Manifest:
        """Return the manifest of a version in a given file, without checking that the file exists."""
        return Manifest(version, self._lance_path(path), size)

    def _manifest(self, version: int, file: StoredFile) -> Manifest:
        modified = int(file.modified.timestamp() * 1000)
        return Manifest(version, self._lance_path(file.path), file.size, file.e_tag, modified)

    def _lance_path(self, path: str) -> str:
        root = self.location if is_local(self.location) else urlsplit(self.location).path
        return "/".join(part for part in f"{root}/{path}".split("/") if part)  # no empty parts, as in Lance


def staged_name(manifest_path: str) -> str:
    """Return the file name in ``_versions`` of a staged manifest, given its path from Lance."""
    return manifest_path.rpartition("/")[2]
