"""What every part of the interface stands on: the metastore, the configuration, the operations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from lance_namespace import LanceNamespace

from airflow_provider_lancens.namespace.config import StorageConfig
from airflow_provider_lancens.namespace.metastore import Metastore, ServerInfo
from airflow_provider_lancens.namespace.operations.namespaces import NamespaceOperations
from airflow_provider_lancens.namespace.operations.repair import RepairOperations
from airflow_provider_lancens.namespace.operations.tables import TableOperations
from airflow_provider_lancens.namespace.operations.versions import VersionOperations

AnyRequest = Any
"""A request model or a dict of its fields: pylance's and LanceDB's Rust core pass dicts."""


class NamespaceCore(LanceNamespace):
    """A namespace's identity and life, without any operation."""

    _kind: ClassVar[str]

    def __init__(self, metastore: Metastore, config: StorageConfig, properties: Mapping[str, str]) -> None:
        """Take what a subclass parsed from its properties; nothing is opened."""
        self._metastore = metastore
        self._config = config
        self._properties = {**properties, "root": config.root}
        self._namespaces = NamespaceOperations(metastore, config.root)
        self._tables = TableOperations(metastore, config)
        self._versions = VersionOperations(self._tables)
        self._repair = RepairOperations(self._versions)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self._properties)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.namespace_id()})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give up idle connections; the next call opens new ones."""
        self._metastore.close()

    def namespace_id(self) -> str:
        """Which server and root this is, in words and without any secret."""
        return f"{self._kind}:{self._metastore.fingerprint}#{self._config.root}"

    def server_info(self) -> ServerInfo:
        """What the server says of itself; it is only read, so compare-and-set may be unknown."""
        return self._metastore.server_info()


def _rebuild(kind: type[NamespaceCore], properties: Mapping[str, str]) -> NamespaceCore:
    return kind(**properties)  # type: ignore[arg-type]
