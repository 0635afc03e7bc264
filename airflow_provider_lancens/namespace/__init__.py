"""Lance Namespace implementations over Hive Metastore, AWS Glue, and any other implementation.

Each is a `lance_namespace.LanceNamespace` constructed from string properties::

    lance_namespace.connect("airflow_provider_lancens.namespace.Hive2Namespace", {"uri": "thrift://host:9083"})
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_lancens._exports import lazy_exports

if TYPE_CHECKING:
    from airflow_provider_lancens.namespace.catalog.catalog_namespace import CatalogNamespace
    from airflow_provider_lancens.namespace.glue.namespace import GlueNamespace
    from airflow_provider_lancens.namespace.hive.namespace import Hive2Namespace, Hive3Namespace

__all__ = [
    "CatalogNamespace",
    "GlueNamespace",
    "Hive2Namespace",
    "Hive3Namespace",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "CatalogNamespace": "catalog.catalog_namespace",
        "GlueNamespace": "glue.namespace",
        "Hive2Namespace": "hive.namespace",
        "Hive3Namespace": "hive.namespace",
    },
)
