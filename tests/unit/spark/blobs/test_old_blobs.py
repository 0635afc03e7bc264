"""Blob columns of older file formats, which other writers create: Lance's scans don't return their bytes."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace import DeclareTableRequest
from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.spark import Table, connect
from airflow_provider_lancens.spark.write.upsert_rows import _kept_columns
from tests.unit.spark.every_verb import SPARK

BLOB = pa.field("file", pa.large_binary(), metadata={"lance-encoding:blob": "true"})


@pytest.fixture
def table(tmp_path: Path) -> Table:
    lake = connect("dir", {"root": str(tmp_path)}, spark=SPARK)
    lake.namespace.declare_table(DeclareTableRequest(id=["t"]))
    schema = pa.schema([pa.field("id", pa.int64()), BLOB])
    lance.write_dataset(
        pa.table({"id": [1, 2], "file": [b"one", b"two"]}, schema=schema),
        str(tmp_path / "t.lance"),
        data_storage_version="2.1",
        enable_stable_row_ids=True,
    )
    return lake.table("t")


def test_spark_reads_the_other_columns_alone(table: Table) -> None:
    with pytest.raises(
        InvalidInputError, match=r"table t: columns: \['file'\] contain blobs of a file format"
    ):
        table.read()

    rows = table.read(columns=["id"]).collect()
    assert [row["id"] for row in rows] == [1, 2]


def test_changes_have_the_other_columns_alone(table: Table) -> None:
    table.append(pa.table({"id": [3], "file": [b"three"]}))
    changes = table.changes(after_version=1)

    with pytest.raises(InvalidInputError, match=r"\['file'\] contain blobs.*option 'columns' of a stream"):
        changes.read()
    assert [row["id"] for row in changes.read(columns=["id"]).collect()] == [3]


def test_rows_with_blobs_are_upserted(table: Table) -> None:
    table.upsert(pa.table({"id": [2, 3], "file": [b"second", b"third"]}), on=["id"])

    dataset = table.dataset()
    files = dataset.take_blobs("file", indices=[0, 1, 2])
    assert dataset.to_table(["id"])["id"].to_pylist() == [1, 2, 3]
    assert [file.readall() for file in files if file is not None] == [b"one", b"second", b"third"]


def test_an_update_of_columns_cannot_keep_them(table: Table) -> None:
    context: Any = SimpleNamespace(table="t", change=SimpleNamespace(on=["id"]))

    with pytest.raises(InvalidInputError, match="which blob column 'file' cannot be"):
        _kept_columns(context, table.dataset(), [])
