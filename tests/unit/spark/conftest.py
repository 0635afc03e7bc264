"""Datasets on local files, and commits as made by the driver, without Spark."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from lance_namespace import DeclareTableRequest, LanceNamespace, connect

import airflow_provider_lancens
from airflow_provider_lancens import LanceCatalog
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.spark.commit.committer import CommitOutcome, Committer
from airflow_provider_lancens.spark.keys import Counts, KeyedWrite
from airflow_provider_lancens.spark.table.dataset_ref import DatasetRef
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable
from airflow_provider_lancens.spark.table.storage_versions import StorageVersions
from tests.support.prepared_tables import ROWS, prepare


@pytest.fixture
def namespace(tmp_path: Path) -> LanceNamespace:
    """A namespace with a declared table, `orders`, without data."""
    made = connect("dir", {"root": str(tmp_path)})
    made.declare_table(DeclareTableRequest(id=["orders"]))
    return made


@pytest.fixture
def lake(tmp_path: Path) -> LanceCatalog:
    """The catalog of a folder without tables."""
    return airflow_provider_lancens.connect("dir", {"root": str(tmp_path)})


@pytest.fixture
def target(tmp_path: Path) -> ResolvedTable:
    """A storage-managed table without data."""
    dataset = DatasetRef(str(tmp_path / "orders.lance"))
    return ResolvedTable(TableId.parse("db$orders"), dataset, StorageVersions(dataset))


@pytest.fixture
def write(target: ResolvedTable) -> Callable[..., CommitOutcome]:
    """Write rows into the table and commit them under a key."""

    def write(mode: str, key: str, rows: pa.Table = ROWS) -> CommitOutcome:
        committer = Committer(target, KeyedWrite(key), Counts(rows.num_rows, 1, 100))
        return committer.commit(prepare(target, mode, rows))

    return write
