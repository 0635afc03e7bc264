"""What rows and versions of a table refer to is only read where the connection may read."""

from collections.abc import Iterator
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance.blob import Blob, blob_array, blob_field
from lance_namespace.errors import PermissionDeniedError

from airflow_provider_lancens.namespace.storage.allowed_locations import AllowedLocations
from airflow_provider_lancens.spark.blobs import BlobReads
from airflow_provider_lancens.spark.table.dataset_ref import DatasetRef


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file of somebody else."""
    path = tmp_path / "secret"
    path.write_bytes(b"hush")
    return path


@pytest.fixture
def table(tmp_path: Path, secret: Path) -> str:
    """A table with a row that refers to it, and one with bytes."""
    location = str(tmp_path / "t.lance")
    values = blob_array([Blob.from_uri(secret.as_uri()), b"own"])
    rows = pa.table({"video": values}, schema=pa.schema([blob_field("video")]))
    lance.write_dataset(rows, location, data_storage_version="2.2", allow_external_blob_outside_bases=True)
    return location


def read(table: str, allowed: AllowedLocations) -> list[bytes]:
    ref = DatasetRef(table, allowed=allowed)
    dataset = ref.open(None)
    reads = BlobReads.of(dataset.schema, {"video": "all"})
    rows: Iterator[pa.RecordBatch] = dataset.scanner(with_row_address=True).to_batches()
    return [
        value
        for batch in reads.batches(dataset, rows, ref.blob_check(dataset))
        for value in batch["video"].to_pylist()
    ]


def test_a_file_outside_of_the_allowed_locations_is_not_opened(table: str, tmp_path: Path) -> None:
    with pytest.raises(
        PermissionDeniedError, match=r"column video: a row refers to a file.*'allowed_locations'"
    ):
        read(table, AllowedLocations((str(tmp_path / "lake"),)))


@pytest.mark.parametrize("allowed", [AllowedLocations(), AllowedLocations(anywhere=True)])
def test_a_file_in_the_tables_own_store_is_read(table: str, allowed: AllowedLocations) -> None:
    assert read(table, allowed) == [b"hush", b"own"]


def test_a_clone_of_a_table_outside_of_the_allowed_locations_is_not_opened(tmp_path: Path) -> None:
    source, clone = str(tmp_path / "payroll.lance"), str(tmp_path / "lake" / "t.lance")
    lance.write_dataset(pa.table({"n": [1]}), source).shallow_clone(clone, 1)
    assert DatasetRef(clone).open(None).count_rows() == 1
    with pytest.raises(PermissionDeniedError, match=r"version 1 of the table at .*'allowed_locations'"):
        DatasetRef(clone, allowed=AllowedLocations((str(tmp_path / "lake"),))).open(None)


def test_a_file_below_a_base_may_not_be_elsewhere_by_a_link(tmp_path: Path, secret: Path) -> None:
    media, location = tmp_path / "lake" / "media", str(tmp_path / "lake" / "t.lance")
    media.mkdir(parents=True)
    (media / "own").write_bytes(b"own")
    (media / "link").symlink_to(secret)
    values = blob_array([Blob.from_uri((media / name).as_uri()) for name in ("own", "link")])
    rows = pa.table({"video": values}, schema=pa.schema([blob_field("video")]))
    base = lance.DatasetBasePath(str(media), "media", False, 1)
    lance.write_dataset(rows, location, data_storage_version="2.2", initial_bases=[base])
    assert read(location, AllowedLocations()) == [b"own", b"hush"]
    allowed = AllowedLocations((str(tmp_path / "lake"),))
    with pytest.raises(PermissionDeniedError, match=r"column video: a row refers to a file"):
        read(location, allowed)
    (media / "link").unlink()
    (media / "link").write_bytes(b"own too")
    assert read(location, allowed) == [b"own", b"own too"]
