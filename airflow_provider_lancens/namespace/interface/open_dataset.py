"""The dataset of a table, opened through its namespace, and Lance's errors as the specification's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lance_namespace.errors import (
    InternalError,
    InvalidInputError,
    LanceNamespaceError,
    TableBranchNotFoundError,
    TableColumnNotFoundError,
    TableSchemaValidationError,
    TableVersionNotFoundError,
)

from airflow_provider_lancens.conditions import parse_condition
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace import table_properties
from airflow_provider_lancens.namespace.interface.core import AnyRequest, NamespaceCore
from airflow_provider_lancens.namespace.lance_errors import panics_as_errors, specified_error
from airflow_provider_lancens.namespace.metastore_protocol import CatalogTable
from airflow_provider_lancens.namespace.requests import table_id
from airflow_provider_lancens.namespace.storage.conditional_writes import require_conditional_writes
from airflow_provider_lancens.namespace.storage.manifests import Manifests
from airflow_provider_lancens.namespace.storage.missing_files import lost_file_error
from airflow_provider_lancens.namespace.storage.referenced_files import check_bases
from airflow_provider_lancens.namespace.storage.table_files import TableFiles
from airflow_provider_lancens.namespace.storage.table_links import check_links
from airflow_provider_lancens.namespace.storage.version_tags import list_branches
from airflow_provider_lancens.namespace.system_columns import (
    CREATED_AT_VERSION,
    ROW_ADDRESS,
    ROW_ID,
    UPDATED_AT_VERSION,
)
from airflow_provider_lancens.redaction import redact, secret_values, shareable_cause

if TYPE_CHECKING:
    import pyarrow as pa
    from lance import LanceDataset
    from lance_namespace import LanceNamespace

_REFUSALS = (
    OSError,
    ValueError,
    RuntimeError,
    KeyError,
    NotImplementedError,
    TypeError,
    OverflowError,
)
"""What Lance raises; the last two for values of a request that its native code can't take."""
_MISSING = "was not found"
_INVALID = "Invalid user input"
_OTHER_COLUMNS = "different schema"
_ADDED_COLUMNS = (ROW_ID, ROW_ADDRESS, CREATED_AT_VERSION, UPDATED_AT_VERSION)


@dataclass(frozen=True, slots=True)
class TableData:
    """A catalog table whose dataset is to be opened."""

    namespace: NamespaceCore
    table: CatalogTable
    options: dict[str, str]
    """Lance's storage options."""

    @classmethod
    def of(cls, namespace: NamespaceCore, parts: Sequence[str] | None) -> TableData:
        """Look up a table.

        Raises:
            TableNotFoundError: (4) there is no such table.
            InvalidInputError: (13) it is not a Lance table, or the id is invalid.
        """
        catalog_table = namespace._tables.get(table_id(parts, namespace._metastore))
        return cls(namespace, catalog_table, dict(namespace._config.storage_options))

    @property
    def id(self) -> TableId:
        """The table's identifier."""
        return self.table.id

    @property
    def location(self) -> str:
        """Where the dataset is stored."""
        return self.namespace._tables.location_of(self.table)

    @property
    def files(self) -> Manifests:
        """The files at that location."""
        return Manifests(self.location, self.options)

    def open(self, version: int | None = None, branch: str | None = None) -> LanceDataset:
        """Open the dataset; commits to it go through the namespace if that is the version authority.

        Args:
            version: the version; None for the newest one.
            branch: the branch; None for main.

        Raises:
            TableVersionNotFoundError: (11) there is no such version, or none at all yet.
            TableBranchNotFoundError: (22) there is no such branch.
        """
        dataset = self._open_main(None if branch else version)
        if not branch:
            return dataset
        if branch not in list_branches(dataset):
            raise TableBranchNotFoundError(f"table {self.id} has no branch {branch!r}")
        check_links(self.location, branch)
        branched = dataset.checkout_version((branch, version))
        return check_bases(branched, self.location, self.namespace.allowed_locations)

    def has_version(self) -> bool:
        """Return whether anything was written to it."""
        try:
            self.open()
        except TableVersionNotFoundError:
            return False
        return True

    def _open_main(self, version: int | None) -> LanceDataset:
        import lance

        check_links(self.location)
        try:
            dataset = lance.LanceDataset(
                self.location, version, storage_options=self.options, **self.authority(self.namespace)
            )
        except ValueError as error:
            if _MISSING not in str(error):
                raise
            missing = "is declared, but nothing has been written to it yet"
            raise TableVersionNotFoundError(
                f"table {self.id} {missing if version is None else f'has no version {version}'}"
            ) from shareable_cause(error)
        return check_bases(dataset, self.location, self.namespace.allowed_locations)

    def authority(self, client: LanceNamespace) -> dict[str, Any]:
        """Return the arguments by which Lance commits through a namespace, for a managed table."""
        if not table_properties.is_managed(self.table):
            return {}
        return {
            "namespace_client": client,
            "table_id": list(self.id.parts),
            "namespace_client_managed_versioning": True,
        }

    def check_commits(self) -> None:
        """Check that the storage refuses one of two commits of a version, if it is what decides between them.

        Raises:
            UnsupportedOperationError: (0) it doesn't.
        """
        if not table_properties.is_managed(self.table):
            require_conditional_writes(TableFiles(self.location, self.options))

    @contextmanager
    def specified_errors(self) -> Iterator[None]:
        """Convert Lance's errors in the block to the specification's, without secrets.

        Raises:
            InvalidInputError: (13) Lance refused a value.
            ConcurrentModificationError: (14) the commit conflicts with another one, or a clean-up removed a
                file meanwhile.
            ServiceUnavailableError: (17) the storage or the metastore didn't answer.
            InternalError: (18) any other failure.
            InvalidTableStateError: (19) a file of the table is lost.
            TableSchemaValidationError: (20) rows don't fit the columns.
        """
        try:
            with panics_as_errors():
                yield
        except LanceNamespaceError:
            raise
        except _REFUSALS as error:
            raise self._specified(error) from shareable_cause(error, secret_values(self.options))

    def _specified(self, error: Exception) -> LanceNamespaceError:
        secrets = secret_values(self.options)
        text = f"table {self.id}: {redact(str(error), secrets)}"
        # Lance raises an OSError for invalid input too, not only for failures of the storage.
        if _INVALID in text:
            return InvalidInputError(text)
        if _OTHER_COLUMNS in text:
            return TableSchemaValidationError(text)
        if (lost := lost_file_error(error, self.location, self.options)) is not None:
            return lost
        if (found := specified_error(error, self.location, secrets)) is not None:
            return found
        return InternalError(text) if isinstance(error, OSError) else InvalidInputError(text)


@contextmanager
def opened(namespace: NamespaceCore, model: AnyRequest) -> Iterator[LanceDataset]:
    """Open the dataset that a request names by id, version and branch, for the block.

    Raises:
        TableNotFoundError: (4) there is no such table.
        TableVersionNotFoundError: (11) there is no such version, or none at all yet.
        InvalidInputError: (13) it is not a Lance table, or Lance refused a value of the request.
        ConcurrentModificationError: (14) the commit conflicts with another one.
        ServiceUnavailableError: (17) the storage or the metastore didn't answer.
        TableBranchNotFoundError: (22) there is no such branch.
    """
    with _opened(TableData.of(namespace, model.id), model) as dataset:
        yield dataset


@contextmanager
def opened_to_commit(namespace: NamespaceCore, model: AnyRequest) -> Iterator[LanceDataset]:
    """Open the dataset as `opened` does, to commit to it.

    Raises:
        UnsupportedOperationError: (0) no commit to this storage is safe.
        LanceNamespaceError: as `opened`.
    """
    data = TableData.of(namespace, model.id)
    data.check_commits()
    with _opened(data, model) as dataset:
        yield dataset


@contextmanager
def _opened(data: TableData, model: AnyRequest) -> Iterator[LanceDataset]:
    with data.specified_errors():
        yield data.open(getattr(model, "version", None), getattr(model, "branch", None))


def lance_condition(dataset: LanceDataset, text: str | None, argument: str) -> str | None:
    """Return a condition of a request in Lance's SQL; None if the request has none.

    Args:
        dataset: the dataset whose columns, and numbers of rows, it may name.
        text: the condition, see docs/conditions.md.
        argument: the field of the request.

    Raises:
        InvalidInputError: (13) it is invalid; the message marks the place.
    """
    return None if text is None else parse_condition(text, with_system_columns(dataset), argument).lance_sql


def with_system_columns(dataset: LanceDataset, found: Sequence[str] = ()) -> pa.Schema:
    """Return the columns of a dataset, and the columns that Lance adds.

    Args:
        dataset: the dataset.
        found: the columns that a search adds.
    """
    import pyarrow as pa

    present = dataset.schema
    added = [pa.field(name, pa.uint64()) for name in _ADDED_COLUMNS] + [
        pa.field(name, pa.float32()) for name in found
    ]
    return pa.schema([*present, *(field for field in added if field.name not in present.names)])


def check_columns(dataset: LanceDataset, paths: Sequence[str], table: Sequence[str] | None) -> None:
    """Check that columns exist; nested ones are named by their path, such as ``a.b``.

    Raises:
        TableColumnNotFoundError: (12) one doesn't.
    """
    for path in paths:
        if path not in dataset.schema.names and _field(dataset.schema, path) is None:
            raise TableColumnNotFoundError(
                f"table {'$'.join(table or ())}: column {path!r} does not exist; "
                f"columns: {dataset.schema.names}"
            )


def _field(schema: pa.Schema, path: str) -> pa.Field | None:
    import pyarrow as pa

    first, *rest = path.split(".")
    field = schema.field(first) if first in schema.names else None
    for name in rest:
        if field is None or not pa.types.is_struct(field.type) or field.type.get_field_index(name) < 0:
            return None
        field = field.type.field(name)
    return field


def last_transaction(dataset: LanceDataset) -> str:
    """Return the UUID of the transaction that made an opened version."""
    transaction = dataset.read_transaction(dataset.version)
    return "" if transaction is None else str(transaction.uuid)
