"""Where a table is: a namespace that can travel, and what it answers about one table."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import lance_namespace
from lance_namespace import (
    DescribeTableRequest,
    DescribeTableVersionRequest,
    LanceNamespace,
    ListTableVersionsRequest,
)
from lance_namespace.errors import InvalidInputError, InvalidTableStateError, TableVersionNotFoundError

from airflow_provider_lancens.identifiers import InvalidIdentifierError, TableId
from airflow_provider_lancens.namespace.config import STORAGE_PREFIX
from airflow_provider_lancens.namespace.interface.writes import WriteRequests
from airflow_provider_lancens.namespace.locations import normalize
from airflow_provider_lancens.spark.dataset import DatasetRef, Decider
from airflow_provider_lancens.spark.manifests import ManifestFolder

if TYPE_CHECKING:
    from lance import LanceDataset


@dataclass(frozen=True, slots=True)
class NamespaceSpec:
    """A namespace as the words that make it, so that a Spark job can be handed one.

    Its repr shows the names of the properties only: the values may hold secrets.
    """

    impl: str
    """What `lance_namespace.connect` takes: ``dir``, ``rest`` or a dotted path to a class."""
    properties: Mapping[str, str]

    def connect(self) -> LanceNamespace:
        """Make the namespace.

        Raises:
            ValueError: `impl` can't be found, or it refused the properties.
        """
        return lance_namespace.connect(self.impl, dict(self.properties))

    def storage_options(self) -> dict[str, str]:
        """Lance's storage options among the properties."""
        return {
            key.removeprefix(STORAGE_PREFIX): value
            for key, value in self.properties.items()
            if key.startswith(STORAGE_PREFIX)
        }

    def __repr__(self) -> str:
        return f"NamespaceSpec(impl={self.impl!r}, properties=<{', '.join(sorted(self.properties))}>)"


@dataclass(frozen=True, slots=True)
class Target:
    """A table as its namespace described it."""

    id: TableId
    dataset: DatasetRef
    versions: LanceNamespace = field(repr=False)
    """Who decides which versions there are: the one seam between managed and storage-managed tables."""
    memory: WriteRequests | None = field(default=None, repr=False)
    """Who remembers writes whose versions were cleaned up; None where the namespace can't."""

    @property
    def parts(self) -> list[str]:
        """The identifier as requests carry it."""
        return list(self.id.parts)

    def latest_version(self) -> int | None:
        """The newest version; None where the table is declared and nothing was written yet."""
        request = ListTableVersionsRequest(id=self.parts, descending=True, limit=1)
        versions = self.versions.list_table_versions(request).versions
        return int(versions[0].version) if versions else None

    def check_version(self, version: int) -> None:
        """Return where there is such a version.

        Raises:
            TableVersionNotFoundError: (11) there is none.
        """
        try:
            self.versions.describe_table_version(DescribeTableVersionRequest(id=self.parts, version=version))
        except TableVersionNotFoundError as error:
            raise TableVersionNotFoundError(
                f"table {self.id} has no version {version}: it was not written yet, or it was cleaned up"
            ) from error

    def open(self, version: int) -> LanceDataset:
        """Open the data set at exactly this version."""
        return self.dataset.open(version)

    def open_latest(self) -> LanceDataset | None:
        """Open the data set at its newest version; None where nothing was written yet."""
        version = self.latest_version()
        return None if version is None else self.open(version)


@contextlib.contextmanager
def described(namespace: NamespaceSpec | LanceNamespace, table: TableId | str) -> Iterator[Target]:
    """Ask the namespace where a declared table lies; one that was made for this is closed afterwards.

    Args:
        namespace: a namespace, or the words that make one.
        table: its identifier, such as ``db$table``.

    Raises:
        InvalidInputError: (13) `table` can't be an identifier.
        TableNotFoundError: (4) it isn't declared.
    """
    identifier = _table_id(table)
    if isinstance(namespace, LanceNamespace):
        yield _describe(namespace, identifier, {})
        return
    client = namespace.connect()
    try:
        yield _describe(client, identifier, namespace.storage_options())
    finally:
        if hasattr(client, "close"):
            client.close()


def _describe(namespace: LanceNamespace, table: TableId, own_options: Mapping[str, str]) -> Target:
    # Whoever reads or writes the data needs credentials: asked for, since a namespace may not vend them
    # by itself, and taken from its own words, since Lance's folder namespace never does.
    request = DescribeTableRequest(id=list(table.parts), vend_credentials=True)
    answer = namespace.describe_table(request)
    if not answer.location:
        raise InvalidTableStateError(f"table {table}: its namespace answered no location")
    options = {**own_options, **(answer.storage_options or {})}
    location = normalize(answer.location)
    memory = namespace if isinstance(namespace, WriteRequests) else None
    if answer.managed_versioning is True:
        dataset = DatasetRef(location, options, Decider(namespace, table.parts))
        return Target(table, dataset, namespace, memory)
    dataset = DatasetRef(location, options)
    return Target(table, dataset, ManifestFolder(dataset), memory)


def _table_id(table: TableId | str) -> TableId:
    try:
        return table if isinstance(table, TableId) else TableId.parse(table)
    except InvalidIdentifierError as error:
        raise InvalidInputError(f"table: expected an identifier such as 'db$table', {error}") from error
