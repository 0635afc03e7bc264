"""A write whose base version is cleaned up while its tasks run: it says so, and can be tried again."""

from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import ConcurrentModificationError, InvalidTableStateError

from airflow_provider_lancens.spark.table.dataset_ref import DatasetRef, small_manifest
from airflow_provider_lancens.spark.write.upsert_rows import KeyReadTask
from airflow_provider_lancens.spark.write.upsert_task import POSITION, KeptColumns
from airflow_provider_lancens.spark.write.write_task import WriteTask

STORED = pa.table({"id": [1, 2], "price": [1.0, 2.0], "kind": ["a", "b"]})
CHANGED = pa.record_batch({"id": [1], "price": [9.0], POSITION: pa.array([0], pa.int64())})


def read_keys(dataset: DatasetRef, manifest: bytes | None) -> Iterable[Any]:
    schema = pa.schema({"id": pa.int64(), POSITION: pa.int64()})
    return KeyReadTask(dataset, 1, schema, None, [[0]], firsts={0: 0}, keys=["id"]).read(0)


def copy_kept_columns(dataset: DatasetRef, manifest: bytes | None) -> Iterable[Any]:
    kept = KeptColumns(["kind"], dataset, 1, rows_at_once=10, manifest=manifest)
    return WriteTask(dataset, STORED.schema, 1, 100, None, kept=kept).fitted([CHANGED])


def append(dataset: DatasetRef, manifest: bytes | None) -> Iterable[Any]:
    return WriteTask(dataset, STORED.schema, 1, 100, None).run(iter(STORED.to_batches()))


@pytest.mark.parametrize("task", [read_keys, copy_kept_columns, append])
@pytest.mark.parametrize("is_sent", [False, True], ids=["manifest is read", "manifest is sent"])
def test_a_base_version_that_is_cleaned_up_is_told_and_retryable(
    task: Callable[..., Iterable[Any]], is_sent: bool, tmp_path: Path
) -> None:
    location = tmp_path / "t.lance"
    stored = lance.write_dataset(STORED, location)
    manifest = small_manifest(stored) if is_sent else None
    dataset = DatasetRef(str(location))
    assert list(task(dataset, manifest))  # as long as the version is kept

    lance.write_dataset(STORED, location, mode="overwrite").cleanup_old_versions(timedelta(0))

    with pytest.raises(ConcurrentModificationError, match=r"version 1 was cleaned up.*Write again"):
        list(task(dataset, manifest))


def test_a_base_version_that_lost_its_files_is_not_taken_for_one_that_was_cleaned_up(tmp_path: Path) -> None:
    location = tmp_path / "t.lance"
    lance.write_dataset(STORED, location)
    for file in (location / "data").iterdir():
        file.unlink()

    with pytest.raises(InvalidTableStateError, match=r"version 1 refers to data/.* rows are lost"):
        list(read_keys(DatasetRef(str(location)), None))
