"""The Lance Namespace over any metastore."""

from __future__ import annotations

from airflow_provider_lancens.namespace.interface.namespaces import NamespaceRequests
from airflow_provider_lancens.namespace.interface.sightings import SightingRequests
from airflow_provider_lancens.namespace.interface.tables import TableRequests
from airflow_provider_lancens.namespace.interface.versions import VersionRequests
from airflow_provider_lancens.namespace.interface.writes import WriteRequests


class MetastoreNamespace(NamespaceRequests, TableRequests, VersionRequests, SightingRequests, WriteRequests):
    """A `lance_namespace.LanceNamespace` whose operations run over a `Metastore`.

    Instances are thread-safe, and pickle as their class and properties: the copy opens its own
    connections. Errors are `lance_namespace.errors` with the specification's codes.
    """
