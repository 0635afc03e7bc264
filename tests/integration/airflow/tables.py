"""A table whose version a test advances."""

import shutil
from dataclasses import dataclass

import lance
import pyarrow as pa
from lance_namespace import (
    CreateNamespaceRequest,
    DeclareTableRequest,
    DeregisterTableRequest,
    LanceNamespace,
)


@dataclass(frozen=True)
class Table:
    """A table that a test creates and advances, without Airflow."""

    namespace: LanceNamespace
    database: str
    name: str

    def __str__(self) -> str:
        return f"{self.database}${self.name}"

    @property
    def id(self) -> list[str]:
        return [self.database, self.name]

    def declare(self, **properties: str) -> str:
        """Create its database and its catalog table, and return its location."""
        self.namespace.create_namespace(CreateNamespaceRequest(id=[self.database], mode="exist_ok"))
        request = DeclareTableRequest(id=self.id, properties=properties)
        return str(self.namespace.declare_table(request).location)

    def drop(self) -> None:
        """Remove its catalog table and its data.

        `drop_table` compares its location with those of all tables first, of which a run's server has many.
        """
        dropped = self.namespace.deregister_table(DeregisterTableRequest(id=self.id))
        shutil.rmtree(str(dropped.location).removeprefix("file://"))

    def advance(self) -> int:
        """Commit one more row, and return the new version."""
        row = pa.table({"n": [1]})
        data = lance.write_dataset(row, namespace_client=self.namespace, table_id=self.id, mode="append")
        return int(data.version)
