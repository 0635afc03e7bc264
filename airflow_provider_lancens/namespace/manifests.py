"""The manifests of one data set: listed, found, and made by put-if-absent.

The file name of a version exists once, so whoever creates it first has made that version, on every
store that Lance reaches.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from airflow_provider_lancens.namespace import storage
from airflow_provider_lancens.namespace.locations import is_local, normalize
from airflow_provider_lancens.namespace.storage import VERSIONS, manifest_names, version_of
from airflow_provider_lancens.namespace.table_files import StoredFile, TableFiles


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


class Manifests(TableFiles):
    """The files of a data set, seen as its versions."""

    def newest(self) -> int | None:
        """The newest version that has its final name; None where there is none."""
        return storage.latest_version(self.location, self._storage_options)

    def all(self) -> dict[int, Manifest]:
        """Every version that has its final name; one listing."""
        versions = ((version_of(file.path), file) for file in self.below(VERSIONS))
        return {version: self._manifest(version, file) for version, file in versions if version is not None}

    def find(self, version: int) -> Manifest | None:
        """A version's manifest, if it has its final name; one request, two in the V1 naming scheme."""
        for name in manifest_names(version):
            if found := self.find_at(f"{VERSIONS}/{name}", version):
                return found
        return None

    def find_at(self, path: str, version: int) -> Manifest | None:
        """The manifest of a version in a file; None where it isn't there."""
        found = self.look(path)
        return None if found is None else self._manifest(version, found)

    def at(self, path: str, version: int, size: int | None = None) -> Manifest:
        """The manifest of a version in a file that isn't looked at."""
        return Manifest(version, self._as_lance_counts(path), size)

    def _manifest(self, version: int, file: StoredFile) -> Manifest:
        modified = int(file.modified.timestamp() * 1000)
        return Manifest(version, self._as_lance_counts(file.path), file.size, file.e_tag, modified)

    def _as_lance_counts(self, path: str) -> str:
        root = normalize(self.location) if is_local(self.location) else urlsplit(self.location).path
        return "/".join(part for part in f"{root}/{path}".split("/") if part)  # as Lance does, no empty ones


def staged_name(manifest_path: str) -> str:
    """The name of a staged manifest's file in ``_versions``, from its path as Lance gives it."""
    return manifest_path.rpartition("/")[2]
