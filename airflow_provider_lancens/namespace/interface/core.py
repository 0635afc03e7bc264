"""Base class of the interface mixins: the metastore, the configuration, the operations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from lance_namespace import LanceNamespace

from airflow_provider_lancens.namespace.config import StorageConfig
from airflow_provider_lancens.namespace.metastore_protocol import Metastore, ServerInfo
from airflow_provider_lancens.namespace.operations.branches import BranchOperations
from airflow_provider_lancens.namespace.operations.connection_stores import ConnectionStores
from airflow_provider_lancens.namespace.operations.namespace_operations import NamespaceOperations
from airflow_provider_lancens.namespace.operations.repair import RepairOperations
from airflow_provider_lancens.namespace.operations.table_operations import TableOperations
from airflow_provider_lancens.namespace.operations.version_operations import VersionOperations
from airflow_provider_lancens.namespace.storage.allowed_locations import AllowedLocations

AnyRequest = Any
"""A request model or a dict of its fields: pylance's and LanceDB's Rust core pass dicts."""


class NamespaceCore(LanceNamespace):
    """Identity and lifecycle of a namespace, without any operation."""

    _kind: ClassVar[str]

    def __init__(self, metastore: Metastore, config: StorageConfig, properties: Mapping[str, str]) -> None:
        """Store the values that a subclass parsed from its properties; no connection is opened."""
        self._metastore = metastore
        self._config = config
        self._properties = {**properties, "root": config.root}
        self._tables = TableOperations(metastore, config, ConnectionStores(metastore, config))
        self._namespaces = NamespaceOperations(
            metastore, config.root, config.allowed, self._tables.check_not_written
        )
        self._versions = VersionOperations(self._tables)
        self._reads = VersionOperations(self._tables, finishes=False)
        self._branches = BranchOperations(self._tables)
        self._repair = RepairOperations(self._versions)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self._properties, self._versions is self._reads)

    def for_reading(self) -> Self:
        """Return a view of this namespace, over the same connections, whose reads write nothing.

        Otherwise the next reader of a managed table finishes a commit whose writer died: what it opened keeps
        its place then. The view returns where the manifest is recorded until a writer finishes the commit.
        """
        view = object.__new__(type(self))  # unlike `copy.copy`, this shares the open connections
        view.__dict__.update(self.__dict__)
        view._versions = self._reads
        view._repair = RepairOperations(self._reads)
        return view

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.namespace_id()})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close idle connections; the next call opens new ones."""
        self._metastore.close()

    @property
    def allowed_locations(self) -> AllowedLocations:
        """Where what its tables refer to may be."""
        return self._config.allowed

    def namespace_id(self) -> str:
        """Return a human-readable identity of server and root, without any secret."""
        return f"{self._kind}:{self._metastore.fingerprint}#{self._config.root}"

    def server_info(self) -> ServerInfo:
        """Describe the server by read-only calls, so compare-and-set support may be unknown.

        Raises:
            UnauthenticatedError: (16) the server refused the credentials.
            ServiceUnavailableError: (17) no server answered.
        """
        return self._metastore.server_info()


def _rebuild(kind: type[NamespaceCore], properties: Mapping[str, str], for_reading: bool) -> NamespaceCore:
    namespace = kind(**properties)  # type: ignore[arg-type]
    return namespace.for_reading() if for_reading else namespace
