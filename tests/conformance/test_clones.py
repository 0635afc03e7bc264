"""Shallow clones in any database keep the files of their source that their newest versions refer to."""

import logging
import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance_namespace import LanceNamespace
from lance_namespace.errors import ErrorCode

from airflow_provider_lancens.namespace.operations import table_operations
from airflow_provider_lancens.spark.maintenance.clean_up import clean_up_versions
from airflow_provider_lancens.spark.maintenance.orphans import remove_orphans
from tests.conformance.codes import refused_with
from tests.support.backends import Backend

ROWS = pa.table({"id": range(100)})
LEFT = [one for one in range(100) if one != 3]
NOW = timedelta(0)


@pytest.fixture
def others(backend: Backend, namespace: LanceNamespace) -> Iterator[list[str]]:
    """The id of another database."""
    created = backend.database()
    namespace.create_namespace({"id": created})
    yield created
    namespace.drop_namespace({"id": created, "behavior": "cascade"})


@pytest.fixture
def clones(
    namespace: LanceNamespace,
    db: list[str],
    others: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> dict[str, lance.LanceDataset]:
    """The clones of a source that was overwritten since, one of them in another database, by their names."""
    monkeypatch.setattr(table_operations, "_SEARCHED", 100_000)  # the server has the tables of all tests
    lake = tmp_path / "lake"
    source = lance.write_dataset(ROWS, str(lake / "source.lance"), max_rows_per_file=50)
    source.delete("id = 3")
    source.create_scalar_index("id", "BTREE")
    cloned = {"near": [*db, "near"], "far": [*others, "far"]}
    for name in cloned:
        source.shallow_clone(str(lake / f"{name}.lance"), source.version)
    lance.write_dataset(pa.table({"id": [1]}), str(lake / "source.lance"), mode="overwrite")
    lance.write_dataset(ROWS, str(lake / "alone.lance"))
    for table in ([*db, "source"], [*db, "alone"], *cloned.values()):
        namespace.register_table({"id": table, "location": str(lake / f"{table[-1]}.lance")})
    namespace.declare_table({"id": [*db, "empty"]})
    namespace.register_table({"id": [*db, "lost"], "location": str(tmp_path / "lost.lance")})
    return {"$".join(table): lance.dataset(str(lake / f"{name}.lance")) for name, table in cloned.items()}


def files(folder: Path) -> set[str]:
    return {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}


def check_readable(clones: dict[str, lance.LanceDataset]) -> None:
    for clone in clones.values():
        found = lance.dataset(clone.uri, session=lance.Session())
        assert sorted(found.to_table()["id"].to_pylist()) == LEFT
        assert found.to_table(filter="id = 7")["id"].to_pylist() == [7]  # by the index
        assert found.count_rows("id = 3") == 0


def test_a_clean_up_and_the_removal_of_orphans_keep_what_clones_refer_to(
    namespace: LanceNamespace,
    db: list[str],
    clones: dict[str, lance.LanceDataset],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    table, source = "$".join([*db, "source"]), tmp_path / "lake" / "source.lance"
    orphan = source / "data" / "orphan.lance"
    orphan.write_bytes(b"of a failed write")
    caplog.set_level(logging.WARNING)

    planned = clean_up_versions(namespace, table, older_than=NOW, dry_run=True)
    cleaned = clean_up_versions(namespace, table, older_than=NOW)
    for file in source.rglob("*"):
        os.utime(file, (0, 0))
    removed = remove_orphans(namespace, table, older_than=timedelta(days=1))

    names = sorted(clones)
    assert (cleaned.versions, cleaned.files, cleaned.clones) == (3, 0, tuple(names))
    assert (planned.versions, planned.files, planned.bytes) == (3, 0, cleaned.bytes)
    assert (removed.paths, removed.clones) == (("data/orphan.lance",), tuple(names))
    assert {path for path in files(source) if not path.startswith("_versions")} > {
        path for clone in clones.values() for path in referred_to(clone)
    }
    assert [one["version"] for one in lance.dataset(str(source)).version_refs()] == [4]
    assert f"kept 5 files that shallow clones refer to: {', '.join(names)}" in caplog.text
    check_readable(clones)
    assert lance.dataset(str(source)).to_table()["id"].to_pylist() == [1]


def test_files_of_a_clone_that_was_dropped_or_overwritten_are_removed(
    namespace: LanceNamespace, db: list[str], clones: dict[str, lance.LanceDataset], tmp_path: Path
) -> None:
    table, source = "$".join([*db, "source"]), tmp_path / "lake" / "source.lance"
    clean_up_versions(namespace, table, older_than=NOW)
    near, far = sorted(clones, key=lambda name: not name.endswith("$near"))
    for file in source.rglob("*"):
        os.utime(file, (0, 0))

    namespace.drop_table({"id": near.split("$")})
    assert remove_orphans(namespace, table, older_than=timedelta(days=1), dry_run=True).clones == (far,)
    lance.write_dataset(clones[far].to_table(), clones[far].uri, mode="overwrite")
    removed = remove_orphans(namespace, table, older_than=timedelta(days=1))
    cleaned = clean_up_versions(namespace, table, older_than=NOW)

    assert (len(removed.paths), removed.clones, cleaned.clones) == (3, (), ())
    assert cleaned.files == 2  # of the index
    assert sorted(lance.dataset(clones[far].uri).to_table()["id"].to_pylist()) == LEFT
    namespace.drop_table({"id": [*db, "source"]})


def test_a_source_is_not_dropped_before_its_clones_in_any_database(
    namespace: LanceNamespace, db: list[str], clones: dict[str, lance.LanceDataset]
) -> None:
    for clone in sorted(clones, key=lambda name: not name.endswith("$near")):
        with refused_with(ErrorCode.INVALID_INPUT, f"{clone} is a clone that refers to its data"):
            namespace.drop_table({"id": [*db, "source"]})
        namespace.drop_table({"id": clone.split("$")})
    namespace.drop_table({"id": [*db, "source"]})


def referred_to(clone: lance.LanceDataset) -> set[str]:
    """The data and deletion files of the source, and one folder of an index, by what Lance tells of them."""
    metadata = [fragment.metadata for fragment in clone.get_fragments()]
    data = {f"data/{file.path}" for one in metadata for file in one.files}
    return data | {one.deletion_file.path(one.id) for one in metadata if one.deletion_file is not None}
