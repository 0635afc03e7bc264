"""A managed table, through its namespace and by its path."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import lance
import obstore
import pyarrow as pa
from lance_namespace import LanceNamespace

from airflow_provider_lancens.namespace.storage.object_store import (
    VERSIONS,
    manifest_names,
    open_store,
    version_of,
)
from airflow_provider_lancens.spark.keys import FOLDERS as KEY_FOLDERS
from airflow_provider_lancens.spark.table.namespace_proxy import NamespaceProxy

Request = dict[str, Any]


@dataclass(frozen=True)
class ManagedTable:
    """A table with one row per commit, whose number identifies the writer."""

    namespace: Any
    id: tuple[str, str]
    storage_options: Mapping[str, str] = field(default_factory=dict)

    @property
    def parts(self) -> list[str]:
        return list(self.id)

    @property
    def location(self) -> str:
        return str(self.namespace.describe_table({"id": self.parts}).location)

    @property
    def version(self) -> int | None:
        """The metastore's."""
        version: int | None = self.namespace.describe_table({"id": self.parts}).version
        return version

    def through(self, namespace: LanceNamespace) -> "ManagedTable":
        """The same table, through another namespace object."""
        return replace(self, namespace=namespace)

    def append(self, row: int) -> int:
        """Commit a row through the namespace, and return the version."""
        written = lance.write_dataset(
            _rows(row), namespace_client=self.namespace, table_id=self.parts, mode="append"
        )
        return int(written.version)

    def append_directly(self, row: int) -> int:
        """Commit a row as a direct writer."""
        written = lance.write_dataset(
            _rows(row), self.location, mode="append", storage_options=dict(self.storage_options)
        )
        return int(written.version)

    def stage(self, row: int) -> Request:
        """Prepare a commit of a row as Lance does, and return its request to the namespace."""
        stager = Stager(self.namespace)
        try:
            self.through(stager).append(row)
        except OSError:
            assert stager.request is not None
            return {**stager.request, "id": self.parts}
        raise AssertionError("it was committed")

    def commit(self, request: Request) -> Any:
        """Send such a request, and return the version's description."""
        return self.namespace.create_table_version(request).version

    def open(self, version: int | None = None) -> lance.LanceDataset:
        return lance.dataset(namespace_client=self.namespace, table_id=self.parts, version=version)

    def open_by_path(self) -> lance.LanceDataset:
        return lance.dataset(self.location, storage_options=dict(self.storage_options))

    def rows(self) -> list[int]:
        """The rows that a reader sees through the namespace."""
        return rows_of(self.open())

    def rows_by_path(self) -> list[int]:
        return rows_of(self.open_by_path())

    def files(self, folder: str) -> list[str]:
        """The paths of all files in one of the dataset's folders."""
        listed = obstore.list(self.store, prefix=folder).collect()
        return sorted(file["path"] for file in listed)

    def remove(self, path: str) -> None:
        """Remove a file below the location, as an administrator might."""
        obstore.delete(self.store, path)

    def final(self, version: int) -> str:
        """The path of a version's manifest, below the location."""
        return f"{VERSIONS}/{manifest_names(version)[0]}"

    @property
    def finals(self) -> list[int]:
        """The versions whose manifests have their final names."""
        found = [version_of(path) for path in self.files(VERSIONS)]
        return sorted(version for version in found if version is not None)

    @property
    def staged(self) -> list[str]:
        """The staged manifests."""
        return [path for path in self.files(VERSIONS) if ".manifest-" in path]

    @property
    def recorded(self) -> list[str]:
        """The manifests of unfinished commits; a file directly in that folder is the high-water mark."""
        found = [path for path in self.files("_lancens") if path.count("/") > 1]
        return [path for path in found if not path.startswith(tuple(KEY_FOLDERS))]

    @property
    def store(self) -> Any:
        return open_store(self.location, self.storage_options)


class Stager(NamespaceProxy):
    """Forwards every request except for the commit, which it records and refuses."""

    request: Request | None = None

    def create_table_version(self, request: Any) -> Any:
        self.request = dict(request)
        raise ConnectionError("staged, and no more")


def rows_of(dataset: lance.LanceDataset) -> list[int]:
    return sorted(dataset.to_table()["row"].to_pylist())


def _rows(*rows: int) -> pa.Table:
    return pa.table({"row": pa.array(rows, pa.int64())})
