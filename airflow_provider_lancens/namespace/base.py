"""Lance Namespace over any metastore."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.interface.catalog_requests import CatalogRequests
from airflow_provider_lancens.namespace.interface.data_requests import DataRequests
from airflow_provider_lancens.namespace.interface.table_polls import NOTHING_KNOWN, StatusOrError, TablePolls
from airflow_provider_lancens.namespace.interface.unsupported_requests import ALTERNATIVES, unsupported
from airflow_provider_lancens.namespace.storage.clones import Clones
from airflow_provider_lancens.namespace.table_status import TableStatus


class MetastoreNamespace(CatalogRequests, DataRequests):
    """`lance_namespace.LanceNamespace` implementation over a `Metastore`.

    Instances are thread-safe, and pickled as their class and properties: a copy opens its own
    connections. Errors are `lance_namespace.errors` with the specification's codes.
    """

    def poll_tables(
        self, tables: Collection[TableId], known: Mapping[TableId, object] = NOTHING_KNOWN
    ) -> dict[TableId, StatusOrError]:
        """Poll many catalog tables, one batch per namespace; see `TablePolls.poll`.

        Args:
            tables: their identifiers, in any namespaces.
            known: the result of an earlier poll, whose statuses are returned where they haven't changed.

        Returns:
            The status of each table, or its error.
        """
        return TablePolls(self._metastore, self._tables).poll(tables, known)

    def read_storage_version(self, status: TableStatus) -> TableStatus:
        """Return a status whose version was read from the storage; see `TablePolls.read_storage_version`.

        Args:
            status: a status with ``needs_listing``, as `poll_tables` returns it.

        Raises:
            PermissionDeniedError: (15) access to the storage is denied.
            UnauthenticatedError: (16) the storage refused the credentials.
            ServiceUnavailableError: (17) the storage can't be reached or failed.
        """
        return TablePolls(self._metastore, self._tables).read_storage_version(status)

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
