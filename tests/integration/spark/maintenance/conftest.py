"""Tables to maintain: one whose versions the storage decides, and one of each deciding metastore."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace import DeclareTableRequest, DescribeTableRequest
from pyspark.sql import DataFrame, SparkSession

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.spark import NamespaceSpec, read_table, write_table
from tests.integration.managed.conftest import Lake, bucket_of, glue_lake, hive_lake
from tests.integration.managed.table import ManagedTable
from tests.servers.glue_double import GlueDouble

Meanwhile = Callable[[ModuleType, Callable[[], object]], None]


@dataclass(frozen=True)
class Maintained:
    """A table as a Spark job and as pylance have it."""

    spark: SparkSession
    spec: NamespaceSpec
    id: str

    @property
    def parts(self) -> list[str]:
        return self.id.split("$")

    def write(self, rows: DataFrame, **arguments: Any) -> int:
        return write_table(rows, self.spec, self.id, **arguments).version

    def write_small_files(self, count: int = 6) -> None:
        """One commit, and a file for every ten rows."""
        self.write(rows(self.spark, 0, count * 10, count))

    def ids(self, version: int | None = None) -> list[int]:
        read = read_table(self.spark, self.spec, self.id, version=version, columns=["id"])
        return sorted(row["id"] for row in read.collect())

    @property
    def described(self) -> Any:
        return self.spec.connect().describe_table(DescribeTableRequest(id=self.parts))

    @property
    def by_path(self) -> lance.LanceDataset:
        return lance.dataset(self.described.location, storage_options=self.described.storage_options)

    @property
    def newest(self) -> lance.LanceDataset:
        if not self.described.managed_versioning:
            return self.by_path
        return lance.dataset(namespace_client=self.spec.connect(), table_id=self.parts)

    @property
    def managed(self) -> ManagedTable:
        options = self.described.storage_options or {}
        return ManagedTable(self.spec.connect(), (self.parts[0], self.parts[1]), options)

    def append_by_path(self, first: int) -> None:
        """As a writer does that knows nothing of the metastore."""
        new = pa.table({"id": [first], "word": [f"word {first}"]})
        lance.write_dataset(
            new, self.described.location, mode="append", storage_options=self.described.storage_options
        )


def rows(spark: SparkSession, first: int, end: int, files: int = 1) -> DataFrame:
    return spark.range(first, end, 1, files).selectExpr("id", "concat('word ', id) AS word")


def managed_table(lake: Lake, spark: SparkSession, database: str) -> Maintained:
    lake.declare(database)
    return Maintained(spark, NamespaceSpec(lake.impl, lake.properties), f"{database}$t")


@pytest.fixture
def stored(spark: SparkSession, tmp_path: Path) -> Maintained:
    """For what doesn't depend on who decides the versions."""
    spec = NamespaceSpec("dir", {"root": str(tmp_path)})
    spec.connect().declare_table(DeclareTableRequest(id=["t"]))
    return Maintained(spark, spec, "t")


@pytest.fixture
def hive(metastore: MetastoreServer, spark: SparkSession, database: str, tmp_path: Path) -> Maintained:
    """A table whose versions Hive Metastore 2.3.10 decides, on local files."""
    return managed_table(hive_lake(metastore, tmp_path), spark, database)


@pytest.fixture
def on_glue(glue: GlueDouble, spark: SparkSession, database: str) -> Maintained:
    """A table whose versions Glue decides, on S3."""
    return managed_table(glue_lake(glue, bucket_of(glue, database)), spark, database)


@pytest.fixture(params=["stored", "hive", "on_glue"])
def table(request: pytest.FixtureRequest) -> Maintained:
    """Every kind."""
    made: Maintained = request.getfixturevalue(request.param)
    return made


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
    """Do something when a module's executors are done, and before its driver commits."""

    def arrange(module: ModuleType, action: Callable[[], object]) -> None:
        genuine = module.side_by_side

        def with_interruption(*arguments: Any) -> list[Any]:
            answers: list[Any] = genuine(*arguments)
            monkeypatch.undo()
            action()
            return answers

        monkeypatch.setattr(module, "side_by_side", with_interruption)

    return arrange
