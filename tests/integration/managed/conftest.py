"""A managed table on each kind of metastore and storage."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lance_namespace
import pytest

from airflow_provider_lancens.embedded import MetastoreServer
from tests.integration.managed.table import ManagedTable
from tests.servers.glue_double import GlueDouble

PACKAGE = "airflow_provider_lancens.namespace"


@dataclass(frozen=True)
class Lake:
    """A metastore, and a storage."""

    kind: str
    properties: Mapping[str, str]
    storage_options: Mapping[str, str] = field(default_factory=dict)

    @property
    def impl(self) -> str:
        return f"{PACKAGE}.{self.kind}"

    def connect(self, **more: str) -> Any:
        return lance_namespace.connect(self.impl, {**self.properties, **more})

    def declare(self, database: str, **properties: str) -> ManagedTable:
        """A new managed table in a new database, through a namespace of its own."""
        namespace = self.connect()
        namespace.create_namespace({"id": [database]})
        table = ManagedTable(namespace, (database, "t"), self.storage_options)
        namespace.declare_table({"id": table.parts, "properties": {"managed_by": "impl", **properties}})
        return table


def hive_lake(server: MetastoreServer, root: Path) -> Lake:
    return Lake("Hive2Namespace", {"uri": server.uri, "root": str(root)})


def glue_lake(glue: GlueDouble, root: str) -> Lake:
    storage = glue.storage if root.startswith("s3:") else {}
    prefixed = {f"storage.{key}": value for key, value in storage.items()}
    return Lake("GlueNamespace", {**glue.properties, **prefixed, "root": root}, storage)


def bucket_of(glue: GlueDouble, database: str) -> str:
    """A bucket that no other test uses, as a root."""
    name = database.replace("_", "-")
    glue.client("s3").create_bucket(Bucket=name)
    return f"s3://{name}/a lake"


@pytest.fixture(params=["hive", pytest.param("hive-4", marks=pytest.mark.slow), "glue-on-s3"])
def lake(request: pytest.FixtureRequest, database: str, tmp_path: Path) -> Lake:
    """Each kind of metastore that can hold managed tables: Hive's with local files, Glue's with S3."""
    match request.param:
        case "hive":
            return hive_lake(request.getfixturevalue("metastore"), tmp_path)
        case "hive-4":
            return hive_lake(request.getfixturevalue("hms4"), tmp_path)
        case _:
            glue = request.getfixturevalue("glue")
            return glue_lake(glue, bucket_of(glue, database))


@pytest.fixture
def hive(metastore: MetastoreServer, tmp_path: Path) -> Lake:
    """For what doesn't depend on the kind: Hive's on local files."""
    return hive_lake(metastore, tmp_path)


@pytest.fixture
def table(lake: Lake, database: str) -> Iterator[ManagedTable]:
    """A managed table at version 1, with the row 1."""
    declared = lake.declare(database)
    declared.append(1)
    yield declared
    drop = {"id": [database], "behavior": "cascade", "mode": "skip"}
    declared.namespace.drop_namespace(drop)
    declared.namespace.close()
