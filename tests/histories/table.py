"""The table of a history: storage-managed or managed, on Spark or in this process."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import lance
import pyarrow as pa
import pyarrow.parquet as pq
from lance_namespace import DeclareTableRequest, DescribeTableRequest

from airflow_provider_lancens.spark import FileSource, NamespaceSpec
from airflow_provider_lancens.spark.types import spark_schema
from tests.histories.local_session import ZONE, LocalFrame, LocalSession


@dataclass
class Table:
    """A declared table."""

    namespace: Any
    id: str
    managed: bool
    """Whether the metastore decides its versions now."""
    folder: Path
    """Where files to write are put."""
    spark: Any = field(default_factory=LocalSession)
    _files: int = 0
    _location: str | None = None

    @classmethod
    def stored(cls, folder: Path, spark: Any = None) -> "Table":
        """Declare a storage-managed table."""
        namespace = NamespaceSpec("dir", {"root": str(folder / "lake")}).connect()
        for name in ("t", "releases"):
            namespace.declare_table(DeclareTableRequest(id=[name]))
        return cls(namespace, "t", False, folder, spark or LocalSession())

    @classmethod
    def on_hive(cls, folder: Path, uri: str, database: str, spark: Any = None) -> "Table":
        """Declare a managed table on Hive Metastore."""
        spec = NamespaceSpec(
            "airflow_provider_lancens.namespace.Hive2Namespace", {"uri": uri, "root": str(folder / "lake")}
        )
        namespace: Any = spec.connect()
        namespace.create_namespace({"id": [database]})
        for name in ("t", "releases"):
            namespace.declare_table({"id": [database, name], "properties": {"managed_by": "impl"}})
        return cls(namespace, f"{database}$t", True, folder, spark or LocalSession())

    @property
    def parts(self) -> list[str]:
        """The parts of its identifier."""
        return self.id.split("$")

    @property
    def on_metastore(self) -> bool:
        """Whether a metastore may decide its versions."""
        return len(self.parts) > 1

    @property
    def release_set(self) -> str:
        """The identifier of a release set that it may belong to."""
        return "$".join([*self.parts[:-1], "releases"])

    @property
    def has_spark(self) -> bool:
        """Whether Spark runs the tasks."""
        return not isinstance(self.spark, LocalSession)

    def open(self, version: int | None = None) -> lance.LanceDataset:
        """Open it as another client does."""
        if self.managed:
            return lance.dataset(namespace_client=self.namespace, table_id=self.parts, version=version)
        return lance.dataset(self.location, version=version)

    @property
    def zone(self) -> str:
        """The time zone of the session."""
        return str(self.spark.conf.get(ZONE))

    def set_zone(self, zone: str) -> None:
        """Set the time zone of the session."""
        if self.has_spark:
            self.spark.conf.set(ZONE, zone)
        else:
            self.spark = LocalSession.in_zone(zone)

    @property
    def authority(self) -> dict[str, Any]:
        """Arguments of a commit by another client: who decides the versions."""
        if not self.managed:
            return {}
        return {
            "namespace_client": self.namespace,
            "table_id": self.parts,
            "namespace_client_managed_versioning": True,
        }

    def commit_as_another_client(self, rows: pa.Table) -> None:
        """Append by pylance."""
        if self.managed:
            lance.write_dataset(rows, namespace_client=self.namespace, table_id=self.parts, mode="append")
        else:
            lance.write_dataset(rows, self.location, mode="append")

    @contextmanager
    def in_threads(self) -> Iterator[None]:
        """Let the package start threads with jobs, which only a real session has to tell the JVM."""
        pinned = {} if self.has_spark else {"PYSPARK_PIN_THREAD": "false"}
        with patch.dict(os.environ, pinned):
            yield

    def frame(self, rows: pa.Table, parts: int = 1) -> Any:
        """Return rows as a DataFrame."""
        if self.has_spark:
            values = [tuple(row.values()) for row in rows.to_pylist()]
            return self.spark.createDataFrame(values, spark_schema(rows.schema)).repartition(parts)
        rows = rows.cast(pa.schema([self._as_in_spark(one) for one in rows.schema]))
        size = max(1, -(-rows.num_rows // parts))
        starts = range(0, max(1, rows.num_rows), size)
        return LocalFrame(self.spark, [rows.slice(start, size) for start in starts])

    def _as_in_spark(self, field: pa.Field) -> pa.Field:
        """Return a column as Spark passes it to a task, with times in the session's zone."""
        if not pa.types.is_timestamp(field.type) or field.type.tz is None:
            return field
        return field.with_type(pa.timestamp(field.type.unit, self.zone))

    def file(self, rows: pa.Table) -> FileSource:
        """Return rows as a file."""
        self._files += 1
        path = self.folder / f"{self._files}.parquet"
        pq.write_table(rows, path)
        return FileSource("parquet", [str(path)])

    def collected(self, frame: Any) -> list[dict[str, Any]]:
        """Return the rows of a DataFrame."""
        # Python's rows would have times without a zone, in that of this machine.
        rows: list[dict[str, Any]] = frame.toArrow().to_pylist() if self.has_spark else frame.collect()
        return rows

    @property
    def location(self) -> str:
        """Where its dataset is."""
        if self._location is None:
            described = self.namespace.describe_table(DescribeTableRequest(id=self.parts))
            self._location = str(described.location)
        return self._location
