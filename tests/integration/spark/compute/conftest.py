"""Tables with a column to compute, and other writers' commits while it is computed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pytest
from pyspark.sql import SparkSession

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.spark import TableLayout
from airflow_provider_lancens.spark.compute.compute_column import ColumnRun
from tests.integration.spark.row_ids import OPTIONS_OF_BOTH_KINDS
from tests.support.computed_tables import Meanwhile
from tests.support.lakes import hive_lake
from tests.support.maintained_tables import Maintained, managed_table, stored_table


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
def stable(request: pytest.FixtureRequest) -> TableLayout:
    """Both kinds of row ids."""
    options: TableLayout = request.param
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
