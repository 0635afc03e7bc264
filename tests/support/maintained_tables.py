"""Tables to maintain: a storage-managed one, and a managed one on each kind of metastore."""

from collections.abc import Callable, Collection
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
from airflow_provider_lancens.spark import NamespaceSpec
from tests.integration.managed.managed_table import ManagedTable
from tests.servers.glue_double import GlueDouble
from tests.support.lakes import Lake, bucket_of, glue_lake, hive_lake
from tests.support.reads import read_table
from tests.support.results import number_of
from tests.support.writes import write_table

Meanwhile = Callable[[ModuleType, Callable[[], object]], None]


Run = Callable[..., tuple[dict[str, Any], dict[str, Any]]]


@dataclass(frozen=True)
class Maintained:
    """A table for Spark jobs and for pylance."""

    spark: SparkSession
    spec: NamespaceSpec
    id: str

    @property
    def parts(self) -> list[str]:
        return self.id.split("$")

    def write(self, rows: DataFrame, **arguments: Any) -> int:
        return number_of(write_table(rows, self.spec, self.id, **arguments))

    def write_small_files(self, count: int = 6) -> None:
        """Write one commit with a file for every ten rows."""
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

    def append_directly(self, first: int) -> None:
        """Append as a direct writer."""
        new = pa.table({"id": [first], "word": [f"word {first}"]})
        lance.write_dataset(
            new, self.described.location, mode="append", storage_options=self.described.storage_options
        )


def rows(spark: SparkSession, first: int, end: int, files: int = 1) -> DataFrame:
    return spark.range(first, end, 1, files).selectExpr("id", "concat('word ', id) AS word")


def managed_table(lake: Lake, spark: SparkSession, database: str) -> Maintained:
    lake.declare(database)
    return Maintained(spark, NamespaceSpec(lake.impl, lake.properties), f"{database}$t")


def stored_table(spark: SparkSession, root: Path) -> Maintained:
    """Create a storage-managed table."""
    table = stored_in(spark, root)
    table.spec.connect().declare_table(DeclareTableRequest(id=table.parts))
    return table


def stored_in(spark: SparkSession, root: Path) -> Maintained:
    """The table of a folder that `stored_table` made."""
    return Maintained(spark, NamespaceSpec("dir", {"root": str(root)}), "t")


@pytest.fixture
def stored(spark: SparkSession, tmp_path: Path) -> Maintained:
    """A storage-managed table, for tests that don't depend on the version authority."""
    return stored_table(spark, tmp_path)


@pytest.fixture
def hive(metastore: MetastoreServer, spark: SparkSession, database: str, tmp_path: Path) -> Maintained:
    """A managed table on Hive Metastore 2.3.10 and local files."""
    return managed_table(hive_lake(metastore, tmp_path), spark, database)


@pytest.fixture
def on_glue(glue: GlueDouble, spark: SparkSession, database: str) -> Maintained:
    """A managed table on Glue and S3."""
    return managed_table(glue_lake(glue, bucket_of(glue, database)), spark, database)


ON_LOCAL_FILES = ("stored", "hive")
"""Kinds for tests that change the times of a table's files, which S3 does not let them."""


def on(*everyday: str, of: Collection[str] = (*ON_LOCAL_FILES, "on_glue")) -> pytest.MarkDecorator:
    """Parametrize `table` by these kinds, in `long` runs by each of `of`; the kinds vary between tests."""
    return pytest.mark.parametrize("table", mostly_long(*everyday, of=of), indirect=True)


def mostly_long(*each_run: str, of: Collection[str]) -> list[Any]:
    """What to parametrize a test by: some of the values in each run, the others in `long` runs."""
    return [pytest.param(value, marks=() if value in each_run else pytest.mark.long) for value in of]


by_path_alone = pytest.mark.parametrize("table", ["stored"], indirect=True)
"""For tests of another client that commits by path, which no managed table accepts."""


@pytest.fixture
def table(request: pytest.FixtureRequest) -> Maintained:
    """A table of the kind selected by `on`."""
    made: Maintained = request.getfixturevalue(request.param)
    return made
