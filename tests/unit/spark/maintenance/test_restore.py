"""Restores of versions whose files are missing, and why they are."""

import json
import uuid
from datetime import timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import ConcurrentModificationError, InvalidTableStateError

from airflow_provider_lancens.namespace.storage.manifests import Manifests
from airflow_provider_lancens.namespace.storage.version_removals import recorded_removal
from airflow_provider_lancens.spark import NamespaceSpec, connect
from airflow_provider_lancens.spark.maintenance.restore import restore_version


def test_a_version_whose_files_a_clean_up_is_removing_is_told_from_a_damaged_one(tmp_path: Path) -> None:
    location = tmp_path / "t.lance"
    for number in range(3):
        lance.write_dataset(pa.table({"id": [number]}), str(location), mode="overwrite")
    spec = NamespaceSpec("dir", {"root": str(tmp_path)})
    first = lance.dataset(str(location), 1).get_fragments()[0].data_files()[0].path
    (location / "data" / first).unlink()

    with (
        recorded_removal(Manifests(str(location), {}), [1, 2]),
        pytest.raises(
            ConcurrentModificationError, match="version 1 is being removed by a clean-up that began"
        ),
    ):
        restore_version(spec, "t", 1)

    with pytest.raises(InvalidTableStateError, match="version 1 refers to files that were removed"):
        restore_version(spec, "t", 1)
    assert restore_version(spec, "t", 2).is_done


def test_undone_commits_are_known_by_their_keys_although_their_versions_were_cleaned_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lake = connect("dir", {"root": str(tmp_path)})
    lake.create_namespace("db")
    table = lake.declare_table("db.t")
    table.append(pa.table({"id": [1]}), key="audited")
    table.tag("audited")
    table.append(pa.table({"id": [2, 3]}), key="monday")
    table.delete("id = 2", key="tuesday")
    table.append(pa.table({"id": [4]}))  # without a key
    table.append(pa.table({"id": [5]}), key="friday")
    table.expire_versions(older_than=timedelta(0))
    assert [one.version for one in table.history()] == [5, 1]

    planned = table.restore("audited", dry_run=True)
    with caplog.at_level("INFO"):
        restored = table.restore("audited")

    assert restored.undone == planned.undone
    assert [(one.operation, one.key, one.inserted, one.deleted) for one in restored.undone] == [
        ("append", "monday", 2, 0),
        ("delete", "tuesday", 0, 1),
        ("", None, 0, 0),
        ("append", "friday", 1, 0),
    ]
    assert "again: monday, tuesday, friday; it isn't known what 1 of them did, from version 4" in caplog.text


def test_an_attempt_that_was_never_committed_is_not_among_undone_commits(tmp_path: Path) -> None:
    lake = connect("dir", {"root": str(tmp_path)})
    lake.create_namespace("db")
    table = lake.declare_table("db.t")
    for number in range(1, 4):
        table.append(pa.table({"id": [number]}), key=f"key {number}")
    table.tag("kept", 1)
    folder = Path(table.location.removeprefix("file://")) / "_lancens" / "keys"
    (record,) = (file for file in folder.rglob("2-*") if not file.name.endswith(".committed"))
    (lost := folder / "00" / ("0" * 32)).mkdir(parents=True)
    fields = json.loads(record.read_text()) | {"key": "lost"}
    (lost / f"2-{uuid.uuid4()}").write_text(json.dumps(fields))
    table.expire_versions(older_than=timedelta(0))

    assert [one.key for one in table.restore(1).undone] == ["key 2", "key 3"]
