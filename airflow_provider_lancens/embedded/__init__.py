"""Starts a real Hive Metastore 2.3.10 from the jars included in PySpark, for quickstarts and tests.

    with EmbeddedMetastore(Path("metastore")) as metastore:
        lance_namespace.connect("airflow_provider_lancens.namespace.Hive2Namespace", {"uri": metastore.uri})

On the command line: ``python -m airflow_provider_lancens.embedded --folder metastore``.

Modules: `server` starts and stops a metastore, locks its folder, and describes the jars to run; `java` finds
Java, and runs it as a process with a Python gateway.
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
