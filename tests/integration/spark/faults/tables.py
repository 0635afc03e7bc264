"""Tables of each kind to write to: the storage decides their versions, or a metastore does."""

from pathlib import Path

import pytest
from lance_namespace import CreateNamespaceRequest, DeclareTableRequest

from airflow_provider_lancens.spark import NamespaceSpec

HIVE = "airflow_provider_lancens.namespace.Hive2Namespace"
DIR, HIVE_STORAGE, HIVE_MANAGED = KINDS = ("dir", "hive-storage", "hive-managed")


def spec_of(kind: str, request: pytest.FixtureRequest, root: Path) -> NamespaceSpec:
    """A namespace that has tables of this kind; the metastore starts when the first test asks."""
    if kind == DIR:
        return NamespaceSpec("dir", {"root": str(root)})
    return NamespaceSpec(HIVE, {"uri": request.getfixturevalue("metastore").uri, "root": str(root)})


def declare(spec: NamespaceSpec, database: str, kind: str) -> str:
    """Declare a table that nothing is written to yet; its identifier."""
    namespace = spec.connect()
    namespace.create_namespace(CreateNamespaceRequest(id=[database]))
    managed_by = {DIR: None, HIVE_STORAGE: "storage", HIVE_MANAGED: "impl"}[kind]
    properties = {"managed_by": managed_by} if managed_by else None
    namespace.declare_table(DeclareTableRequest(id=[database, "orders"], properties=properties))
    return f"{database}$orders"
