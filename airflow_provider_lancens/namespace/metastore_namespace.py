"""Lance Namespace over any metastore: its operations, and alternatives to the unsupported ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NoReturn

from lance_namespace.errors import UnsupportedOperationError

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.interface.catalog_requests import CatalogRequests
from airflow_provider_lancens.namespace.interface.data_requests import DataRequests
from airflow_provider_lancens.namespace.interface.status_reader import (
    NOTHING_KNOWN,
    StatusOrError,
    StatusReader,
)
from airflow_provider_lancens.namespace.storage.clones import Clones
from airflow_provider_lancens.namespace.table_status import TableStatus

_DATASET = "dataset = lance.dataset(namespace_client=namespace, table_id=[...])"
_SEVERAL_ENTRIES = "a metastore cannot change several tables at once"
_NO_TRANSACTIONS = "a metastore has no transactions"
_NO_VIEWS = (
    "a metastore cannot compute one; write the rows into a table with a job, such as LanceOverwriteOperator"
)


def _on_dataset(call: str) -> str:
    return f"{_DATASET}, then {call}"


ALTERNATIVES: Mapping[str, str] = {
    "alter_table_backfill_columns": _on_dataset(
        "dataset.add_columns(...) with a function, or a job on Spark"
    ),
    "alter_transaction": f"{_NO_TRANSACTIONS}; a commit is one call of create_table_version",
    "batch_commit_tables": f"{_SEVERAL_ENTRIES}; call the operations one by one",
    "batch_create_table_versions": f"{_SEVERAL_ENTRIES}; call create_table_version for each table",
    "batch_delete_table_versions": _on_dataset(
        "dataset.cleanup_old_versions(), or LanceCleanUpVersionsOperator"
    ),
    "create_empty_table": "declare_table, which replaces it, or create_table without rows",
    "create_materialized_view": _NO_VIEWS,
    "describe_transaction": f"{_NO_TRANSACTIONS}; for the transaction of a version: {_DATASET}, then "
    "dataset.read_transaction(version)",
    "refresh_materialized_view": _NO_VIEWS,
}
"""Alternative by operation; the conformance page lists them."""


def unsupported(operation: str, instead: str) -> Callable[..., NoReturn]:
    """Return a method that refuses an operation, and names the alternative."""

    def refuse(_self: object, *_request: object, **_named: object) -> NoReturn:
        raise UnsupportedOperationError(
            f"{operation} is not supported by a metastore's namespace; instead: {instead}"
        )

    refuse.__name__ = operation
    refuse.__doc__ = (
        f"Not supported; instead: {instead}.\n\nRaises:\n    UnsupportedOperationError: (0) always."
    )
    return refuse


class MetastoreNamespace(CatalogRequests, DataRequests):
    """`lance_namespace.LanceNamespace` implementation over a `Metastore`.

    Instances are thread-safe, and pickled as their class and properties: a copy opens its own
    connections. Errors are `lance_namespace.errors` with the specification's codes.
    """

    def poll_tables(
        self, tables: Collection[TableId], known: Mapping[TableId, object] = NOTHING_KNOWN
    ) -> dict[TableId, StatusOrError]:
        """Poll many catalog tables, one batch per namespace; see `StatusReader.poll`.

        Args:
            tables: their identifiers, in any namespaces.
            known: the result of an earlier poll, whose statuses are returned where they haven't changed.

        Returns:
            The status of each table, or its error.
        """
        return StatusReader(self._metastore, self._tables).poll(tables, known)

    def read_storage_version(self, status: TableStatus) -> TableStatus:
        """Return a status whose version was read from the storage; see `StatusReader.read_storage_version`.

        Args:
            status: a status with ``needs_listing``, as `poll_tables` returns it.

        Raises:
            PermissionDeniedError: (15) access to the storage is denied.
            UnauthenticatedError: (16) the storage refused the credentials.
            ServiceUnavailableError: (17) the storage can't be reached or failed.
        """
        return StatusReader(self._metastore, self._tables).read_storage_version(status)

    def clones_of(self, table: TableId, location: str) -> Clones:
        """Return the registered shallow clones of a table, before files of it are removed.

        Args:
            table: its identifier.
            location: its location.

        Returns:
            The tables whose newest versions refer to files of it, and why there may be others.

        Raises:
            ServiceUnavailableError: (17) the metastore, or the storage of the table, doesn't answer.
        """
        return self._tables.clones_of(table, location)


for _operation, _instead in ALTERNATIVES.items():
    setattr(MetastoreNamespace, _operation, unsupported(_operation, _instead))
