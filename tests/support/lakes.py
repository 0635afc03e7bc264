"""Lakes: a kind of metastore and a storage, with managed tables."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lance_namespace
import pyarrow as pa
import pytest

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.metastore_protocol import ParameterChange
from tests.integration.managed.managed_table import ManagedTable
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
        """Declare a managed table in a new database, through a new namespace."""
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


LAKES = {"hive": (), "hive-4": (pytest.mark.thorough,), "glue-on-s3": ()}
"""Each kind of metastore that can hold managed tables: Hive's with local files, Glue's with S3; its marks."""


def on_lakes_in_turn(name: str, values: Mapping[str, Any]) -> pytest.MarkDecorator:
    """Parametrize a test by values and by `lake`: each value on Hive's, and two of three also on another one.

    In `long` runs, each value is tested on each kind. Tests without values cover differences between kinds.
    """
    turns = itertools.cycle(["hive-4", "glue-on-s3", "hive"])
    cases = [
        pytest.param(lake, value, id=f"{lake}-{key}", marks=_marks(lake, turn))
        for (key, value), turn in zip(values.items(), turns, strict=False)
        for lake in LAKES
    ]
    return pytest.mark.parametrize(("lake", name), cases, indirect=["lake"])


def _marks(lake: str, turn: str) -> tuple[pytest.MarkDecorator, ...]:
    return LAKES[lake] if lake in ("hive", turn) else (pytest.mark.long,)


@pytest.fixture
def hive(metastore: MetastoreServer, tmp_path: Path) -> Lake:
    """Hive's lake on local files, for tests that don't depend on the kind."""
    return hive_lake(metastore, tmp_path)


NEW = pa.table({"row": [9]})


def rewrite(table: ManagedTable, *removed: str, **parameters: str) -> None:
    """Change a catalog table's parameters as another client."""
    named = {key.replace("__", "."): value for key, value in parameters.items()}
    change = ParameterChange(named, removed)
    table.namespace._metastore.update_table(TableId.of(table.parts), lambda _: change)
