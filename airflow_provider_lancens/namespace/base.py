"""Lance Namespace over any metastore."""

from __future__ import annotations

from airflow_provider_lancens.namespace.interface.catalog_requests import (
    NamespaceRequests,
    TableRequests,
    UnsupportedRequests,
    VersionRequests,
)
from airflow_provider_lancens.namespace.interface.data_requests import (
    IndexRequests,
    QueryRequests,
    ReferenceRequests,
    RowRequests,
    SchemaRequests,
)
from airflow_provider_lancens.namespace.interface.table_polls import TablePolls


class MetastoreNamespace(
    NamespaceRequests,
    TableRequests,
    VersionRequests,
    RowRequests,
    QueryRequests,
    SchemaRequests,
    IndexRequests,
    ReferenceRequests,
    TablePolls,
    UnsupportedRequests,
):
    """`lance_namespace.LanceNamespace` implementation over a `Metastore`.

    Instances are thread-safe, and pickled as their class and properties: a copy opens its own
    connections. Errors are `lance_namespace.errors` with the specification's codes.
    """
