"""Starts a real Hive Metastore 2.3.10 from the jars included in PySpark, for quickstarts and tests.

    with EmbeddedMetastore(Path("metastore")) as metastore:
        lance_namespace.connect("airflow_provider_lancens.namespace.Hive2Namespace", {"uri": metastore.uri})

On the command line: ``python -m airflow_provider_lancens.embedded --folder metastore``.

How it is built: `server` starts and stops, with `lock` (one server a folder), `java` (which Java),
`jvm` (the process, and the Python gateway into it), `thrift_service` (the server's own pieces put
together on loopback) and `probe` (does it answer). `distribution` describes the jars to run.
"""

from airflow_provider_lancens.embedded.exceptions import (
    EmbeddedMetastoreError,
    FolderInUseError,
    JarsMissingError,
    JavaUnsuitableError,
    MetastoreStartError,
)
from airflow_provider_lancens.embedded.server import Distribution, EmbeddedMetastore, MetastoreServer

__all__ = [
    "Distribution",
    "EmbeddedMetastore",
    "EmbeddedMetastoreError",
    "FolderInUseError",
    "JarsMissingError",
    "JavaUnsuitableError",
    "MetastoreServer",
    "MetastoreStartError",
]
