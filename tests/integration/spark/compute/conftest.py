"""Tables with a column to compute, and other writers' commits while it is computed."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.spark import ComputeResult, WriteOptions, compute_column
from airflow_provider_lancens.spark.compute.compute_column import ColumnRun
from tests.integration.managed.conftest import hive_lake
from tests.integration.spark.maintenance.conftest import Maintained, managed_table, rows, stored_table
from tests.integration.spark.row_ids import OPTIONS_OF_BOTH_KINDS

Meanwhile = Callable[[Callable[[], object]], None]


def doubled(batch: pa.RecordBatch) -> pa.Array:
    return pc.multiply(batch["id"], 2)


def compute(table: Maintained, function: Any = doubled, **arguments: Any) -> ComputeResult:
    """Compute column `n` from column `id`, by default as its double."""
    given: dict[str, Any] = {"column": "n", "columns": ["id"], **arguments}
    return compute_column(table.spark, table.spec, table.id, function=function, **given)


def values(table: Maintained, column: str = "n") -> dict[int, Any]:
    """The column's values by `id`."""
    found = table.newest.to_table(columns=["id", column]).to_pylist()
    assert len({row["id"] for row in found}) == len(found)
    return {row["id"]: row[column] for row in found}


def expected(ids: Any) -> dict[int, Any]:
    return {number: 2 * number for number in ids}


def folder(table: Maintained) -> Path:
    return Path(table.described.location.removeprefix("file://"))


def data_files(table: Maintained) -> dict[str, str]:
    """The digests of the data files, by their names."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (folder(table) / "data").iterdir()
    }


def direct(table: Maintained) -> lance.LanceDataset:
    """The newest version, for commits of another client that respects the version authority."""
    return table.newest


@pytest.fixture(params=["managed", pytest.param("stored", marks=pytest.mark.long)])
def table(
    request: pytest.FixtureRequest,
    metastore: MetastoreServer,
    spark: SparkSession,
    database: str,
    tmp_path: Path,
) -> Maintained:
    """A table whose versions the storage decides, and one whose versions Hive Metastore does."""
    if request.param == "stored":
        return stored_table(spark, tmp_path)
    return managed_table(hive_lake(metastore, tmp_path), spark, database)


@pytest.fixture
def stored(spark: SparkSession, tmp_path: Path) -> Maintained:
    """A storage-managed table, for tests that don't depend on the version authority."""
    return stored_table(spark, tmp_path)


@pytest.fixture(params=OPTIONS_OF_BOTH_KINDS)
def stable(request: pytest.FixtureRequest) -> WriteOptions:
    """Both kinds of row ids."""
    options: WriteOptions = request.param
    return options


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
    """Call a function before the driver commits the first finished fragments."""

    def arrange(action: Callable[[], object]) -> None:
        genuine = ColumnRun.commit

        def interrupted(run: ColumnRun, files: Any) -> bool:
            monkeypatch.undo()
            action()
            return genuine(run, files)

        monkeypatch.setattr(ColumnRun, "commit", interrupted)

    return arrange


def fill(table: Maintained, fragments: int = 4, **arguments: Any) -> None:
    """Write ids, ten in a fragment."""
    table.write(rows(table.spark, 0, 10 * fragments, fragments), **arguments)
