"""Lance Namespace over any metastore."""

from __future__ import annotations

from airflow_provider_lancens.namespace.interface.index_requests import IndexRequests
from airflow_provider_lancens.namespace.interface.namespace_requests import NamespaceRequests
from airflow_provider_lancens.namespace.interface.query_requests import QueryRequests
from airflow_provider_lancens.namespace.interface.reference_requests import ReferenceRequests
from airflow_provider_lancens.namespace.interface.row_requests import RowRequests
from airflow_provider_lancens.namespace.interface.schema_requests import SchemaRequests
from airflow_provider_lancens.namespace.interface.table_polls import TablePolls
from airflow_provider_lancens.namespace.interface.table_requests import TableRequests
from airflow_provider_lancens.namespace.interface.unsupported_requests import UnsupportedRequests
from airflow_provider_lancens.namespace.interface.version_requests import VersionRequests


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
