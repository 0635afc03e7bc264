"""Data sets on local files, and commits to them as the driver makes them, without Spark."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from lance.fragment import write_fragments

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.spark.changes import KINDS, Change
from airflow_provider_lancens.spark.commit import Committer, Outcome
from airflow_provider_lancens.spark.dataset import DatasetRef
from airflow_provider_lancens.spark.history import Counts
from airflow_provider_lancens.spark.manifests import ManifestFolder
from airflow_provider_lancens.spark.target import Target

ROWS = pa.table({"n": [1, 2]})


@pytest.fixture
def target(tmp_path: Path) -> Target:
    """A storage-managed table that nothing was written to yet."""
    dataset = DatasetRef(str(tmp_path / "orders.lance"))
    return Target(TableId.parse("db$orders"), dataset, ManifestFolder(dataset))


def prepare(target: Target, mode: str, rows: pa.Table = ROWS) -> Change:
    """What the executors do: write files, while the table is at its latest version."""
    base = target.open_latest()
    appends = mode == "append" and base is not None
    fragments = write_fragments(
        rows, base if appends else target.dataset.location, mode="append" if appends else "overwrite"
    )
    return KINDS[mode](str(target.id), None if base is None else base.version, rows.schema, fragments)


@pytest.fixture
def write(target: Target) -> Callable[..., Outcome]:
    """Write rows into the table and commit them under a key."""

    def write(mode: str, key: str, rows: pa.Table = ROWS) -> Outcome:
        return Committer(target, key, Counts(rows.num_rows, 1, 100)).commit(prepare(target, mode, rows))

    return write
