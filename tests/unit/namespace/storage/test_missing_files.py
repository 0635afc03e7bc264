"""Files that a table, or a shallow clone's source, lost are found, named in the error, and not retried."""

import shutil
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import ConcurrentModificationError, InvalidTableStateError

from airflow_provider_lancens import LanceCatalog, Table, connect
from airflow_provider_lancens.namespace.storage.missing_files import StoredVersions, lost_file_error
from tests.servers.s3_double import S3Double
from tests.support.indices import build_index
from tests.support.reads import read_table
from tests.unit.spark.every_verb import NAME, SPARK, VERBS, Lake, Verb, collected, create, fill, request

LOST_INDEX = r"a part of index 'n_btree' is lost, and no row. Build the index again, with if_exists='replace'"
NEEDS_INDEX: Mapping[str, Verb] = {
    **{name: VERBS[name] for name in ("delete rows", "delete", "upsert", "replace where")},
    "filtered read": collected(read_table, filter="n = 1"),
    "filtered count": request("count_table_rows", predicate="n = 1"),
    "conditional update": request("update_table", updates=[["v", "5"]], predicate="n = 1"),
}
NEEDS_ROWS = ("read", "statistics", "upsert", "delete", "compact", "index", "compute column")
BTREE = ("n", "BTREE")


@pytest.fixture
def table(tmp_path: Path) -> Lake:
    lake = Lake(str(tmp_path), "storage")
    fill(lake)
    return lake


@pytest.mark.parametrize("verb", NEEDS_INDEX.values(), ids=NEEDS_INDEX)
def test_what_needs_a_lost_index_says_to_build_it_again(table: Lake, verb: Verb) -> None:
    shutil.rmtree(Path(table.location, "_indices"))
    with pytest.raises(InvalidTableStateError, match=LOST_INDEX):
        verb(table)

    build_index(SPARK, table.namespace, NAME, *BTREE, name="n_btree", if_exists="replace")
    verb(table)


@pytest.mark.parametrize("folder", ["data", "_deletions"])
def test_lost_rows_are_told_and_how_to_go_back(table: Lake, folder: str) -> None:
    shutil.rmtree(Path(table.location, folder))

    for name in NEEDS_ROWS if folder == "data" else ("read", "upsert", "delete rows"):
        with pytest.raises(InvalidTableStateError, match=r"rows are lost\. Restore the newest version that"):
            VERBS[name](table)


@pytest.mark.parametrize("name", ["delete rows", "upsert"])
def test_a_lost_index_in_an_object_store_is_told(name: str) -> None:
    with S3Double("lake") as s3:
        lake = create(s3, "storage")
        for key in [key for key in s3.bucket.objects if "/_indices/" in key]:
            s3.bucket.objects.pop(key)

        with pytest.raises(InvalidTableStateError, match=LOST_INDEX):
            VERBS[name](lake)


def test_an_index_that_the_source_of_a_clone_has_lost_is_told_with_its_location(tmp_path: Path) -> None:
    lake, source = clone_with_index(tmp_path)
    shutil.rmtree(Path(source, "_indices"))

    with pytest.raises(InvalidTableStateError, match=rf"refers to {source}/_indices/\S+, which does not"):
        lake.table("clone").delete("id = 1")

    lake.table("clone").create_index("id", "BTREE", name="id_idx", if_exists="replace")
    assert lake.table("clone").delete("id = 1").deleted == 1


def test_a_file_to_which_no_version_refers_any_more_is_retried(tmp_path: Path) -> None:
    lance.write_dataset(pa.table({"id": [1]}), str(tmp_path))
    error = OSError(f"Not found: {tmp_path}/data/removed.lance, src/local.rs:1:2")

    assert isinstance(lost_file_error(error, str(tmp_path), {}), ConcurrentModificationError)


def clone_with_index(folder: Path) -> tuple[LanceCatalog, str]:
    """Return a catalog with a table and a shallow clone of it, and the location of the former."""
    lake = connect("dir", {"root": str(folder)}, spark=SPARK)
    source: Table = lake.declare_table("source")
    dataset = lance.write_dataset(pa.table({"id": [1, 2, 3]}), source.location, mode="append")
    dataset.create_scalar_index("id", "BTREE", name="id_idx")
    dataset.shallow_clone(str(folder / "clone.lance"), dataset.version)
    return lake, source.location


@pytest.fixture
def clone(tmp_path: Path) -> StoredVersions:
    source = lance.write_dataset(pa.table({"x": [1, 2, 3]}), str(tmp_path / "source.lance"))
    source.delete("x = 1")
    source.shallow_clone(str(tmp_path / "clone.lance"), 2)
    return StoredVersions(str(tmp_path / "clone.lance"), {})


def test_a_clone_of_a_whole_source_is_whole(clone: StoredVersions) -> None:
    assert clone.missing_files(2) == ()


@pytest.mark.parametrize("folder", ["data", "_deletions"])
def test_files_that_its_source_lost_are_missing(clone: StoredVersions, tmp_path: Path, folder: str) -> None:
    [lost] = (tmp_path / "source.lance" / folder).iterdir()
    lost.unlink()

    assert clone.missing_files(2) == (str(lost),)


def test_an_index_that_its_source_lost_is_missing(tmp_path: Path) -> None:
    source = lance.write_dataset(pa.table({"x": [1, 2, 3]}), str(tmp_path / "source.lance"))
    source.create_scalar_index("x", "BTREE")
    source.shallow_clone(str(tmp_path / "clone.lance"), 2)
    clone = StoredVersions(str(tmp_path / "clone.lance"), {})
    [lost] = (tmp_path / "source.lance" / "_indices").iterdir()
    assert clone.missing_files(2) == ()

    source.create_scalar_index("x", "BTREE", replace=True)
    source.cleanup_old_versions(timedelta(0))

    assert clone.missing_files(2) == (str(lost),)
