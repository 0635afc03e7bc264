"""Storage-managed tables, and managed tables on each kind of metastore."""

from pathlib import Path

import pytest
from lance_namespace import CreateNamespaceRequest, DeclareTableRequest

from airflow_provider_lancens.spark import NamespaceSpec
from tests.support.lakes import bucket_of, glue_lake

HIVE = "airflow_provider_lancens.namespace.Hive2Namespace"
DIR, HIVE_STORAGE, HIVE_MANAGED = KINDS = ("dir", "hive-storage", "hive-managed")
GLUE_STORAGE, GLUE_MANAGED = KINDS_ON_S3 = ("glue-storage", "glue-managed")
MANAGED = {HIVE_MANAGED, GLUE_MANAGED}
_MANAGED_BY = {HIVE_STORAGE: "storage", HIVE_MANAGED: "impl", GLUE_STORAGE: "storage", GLUE_MANAGED: "impl"}


def spec_of(kind: str, request: pytest.FixtureRequest, root: Path) -> NamespaceSpec:
    """A namespace with tables of this kind; its server is started on first use."""
    if kind == DIR:
        return NamespaceSpec("dir", {"root": str(root)})
    if kind in KINDS_ON_S3:
        glue = request.getfixturevalue("glue")
        lake = glue_lake(glue, bucket_of(glue, request.getfixturevalue("database")))
        return NamespaceSpec(lake.impl, lake.properties)
    return NamespaceSpec(HIVE, {"uri": request.getfixturevalue("metastore").uri, "root": str(root)})


def declare(spec: NamespaceSpec, database: str, kind: str) -> str:
    """Declare a table, and return its identifier."""
    namespace = spec.connect()
    namespace.create_namespace(CreateNamespaceRequest(id=[database]))
    managed_by = _MANAGED_BY.get(kind)
    properties = {"managed_by": managed_by} if managed_by else None
    namespace.declare_table(DeclareTableRequest(id=[database, "orders"], properties=properties))
    return f"{database}$orders"
