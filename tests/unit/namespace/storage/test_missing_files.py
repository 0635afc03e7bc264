"""A shallow clone refers to files of its source, whose removal is found like that of its own."""

from datetime import timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from airflow_provider_lancens.namespace.storage.missing_files import StoredVersions


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
