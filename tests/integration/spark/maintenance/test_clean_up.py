import os
import shutil
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import (
    InvalidInputError,
    InvalidTableStateError,
    TableVersionNotFoundError,
    UnsupportedOperationError,
)

from airflow_provider_lancens.namespace.managed.publication import Publication
from airflow_provider_lancens.spark import ExpireResult
from airflow_provider_lancens.spark.maintenance.clean_up import clean_up_versions
from tests.support.bookmarks import find_bookmark, move_bookmark
from tests.support.maintained_tables import Maintained, on, rows

NOW = timedelta(0)


def clean_up(table: Maintained, **arguments: Any) -> ExpireResult:
    return clean_up_versions(table.spec, table.id, **{"older_than": NOW, **arguments})


def overwrite(table: Maintained, times: int) -> None:
    """Commit this many versions, each with different rows."""
    for first in range(times):
        table.write(rows(table.spark, first, first + 10), mode="overwrite")


def versions(table: Maintained) -> list[int]:
    return sorted(reference["version"] for reference in table.by_path.version_refs())


@on("hive")
def test_old_versions_and_their_unreferenced_files_are_removed(table: Maintained) -> None:
    overwrite(table, 4)

    result = clean_up(table)

    assert (result.version, result.versions, result.files, result.kept_by_tag) == (4, 3, 3, 0)
    assert result.bytes > 0
    assert versions(table) == [4]
    assert table.ids() == list(range(3, 13))
    table.write(rows(table.spark, 20, 21))
    assert (table.newest.version, table.newest.count_rows()) == (5, 11)


def test_a_second_clean_up_removes_nothing(stored: Maintained) -> None:
    overwrite(stored, 3)
    clean_up(stored)

    again = clean_up(stored)

    assert (again.versions, again.files, again.bytes) == (0, 0, 0)


def test_a_table_with_a_link_or_another_data_set_inside_is_not_cleaned_up(
    stored: Maintained, tmp_path: Path
) -> None:
    overwrite(stored, 2)
    root, others = Path(stored.by_path.uri), tmp_path / "others.lance"
    lance.write_dataset(pa.table({"x": [1]}), str(others))
    for file in (others / "data").iterdir():
        os.utime(file, (0, 0))  # old enough for a clean-up to presume that its write failed

    for stranger in (root / "data" / "link", root / "data" / "nested.lance"):
        if stranger.name == "link":
            stranger.symlink_to(others / "data")
        else:
            shutil.copytree(others, stranger)
        with pytest.raises(
            (InvalidInputError, UnsupportedOperationError), match=f"{stranger} is a symbolic link"
        ):
            clean_up(stored)
        assert lance.dataset(str(others)).to_table().num_rows == 1
        stranger.unlink() if stranger.is_symlink() else shutil.rmtree(stranger)

    assert clean_up(stored).versions == 1


def test_a_tagged_version_stays_readable(hive: Maintained) -> None:
    overwrite(hive, 4)
    hive.newest.tags.create("reader", 2)

    result = clean_up(hive)

    assert (result.versions, result.kept_by_tag) == (2, 1)
    assert versions(hive) == [2, 4]
    assert hive.ids(2) == list(range(1, 11))


@on("on_glue")
def test_a_bookmark_that_expired_keeps_no_version(table: Maintained) -> None:
    overwrite(table, 4)
    move_bookmark(table.spec, table.id, "reader", 2, expires_after=timedelta(milliseconds=1))
    until = time.monotonic() + 30

    said = clean_up(table, dry_run=True)
    while not said.expired_bookmarks and time.monotonic() < until:  # the storage's clock may show seconds
        time.sleep(0.1)
        said = clean_up(table, dry_run=True)
    there, result = versions(table), clean_up(table)

    assert there == [1, 2, 3, 4]
    assert (result.versions, result.kept_by_tag, result.expired_bookmarks) == (3, 0, ("reader",))
    assert (said.versions, said.files, said.bytes) == (result.versions, result.files, result.bytes)
    assert versions(table) == [4]
    found = find_bookmark(table.spec, table.id, "reader")
    assert found is not None
    assert (found.version, found.is_expired) == (2, True)


def test_a_dry_run_reports_the_same_and_removes_nothing(stored: Maintained) -> None:
    overwrite(stored, 4)

    said = clean_up(stored, dry_run=True)
    there = versions(stored)
    done = clean_up(stored)

    assert there == [1, 2, 3, 4]
    assert (
        (said.versions, said.files, said.bytes)
        == (done.versions, done.files, done.bytes)
        == (3, 3, said.bytes)
    )
    assert (said.outcome, done.outcome) == ("planned", "done")


@pytest.mark.parametrize(
    ("limits", "left"),
    [
        ({"keep_versions": 3}, [2, 3, 4]),
        ({"older_than": timedelta(days=1)}, [1, 2, 3, 4]),
        ({"older_than": timedelta(days=1), "keep_versions": 3}, [1, 2, 3, 4]),
        ({"keep_versions": 9}, [1, 2, 3, 4]),
    ],
)
def test_a_version_is_removed_only_if_old_and_not_among_the_newest(
    stored: Maintained, limits: dict[str, Any], left: list[int]
) -> None:
    overwrite(stored, 4)

    clean_up(stored, **limits)

    assert versions(stored) == left


def test_an_interrupted_commit_is_published_before_anything_is_removed(
    hive: Maintained, monkeypatch: pytest.MonkeyPatch
) -> None:
    overwrite(hive, 2)

    def stops(*_: object) -> None:
        raise OSError("the storage is unreachable")

    with monkeypatch.context() as patch:
        patch.setattr(Publication, "finish", stops)
        overwrite(hive, 1)
    assert versions(hive) == [1, 2]

    result = clean_up(hive)

    assert (result.version, result.versions) == (3, 2)
    assert versions(hive) == [3]
    assert hive.ids() == list(range(10))


def test_nothing_is_removed_if_metastore_and_storage_disagree(hive: Maintained) -> None:
    overwrite(hive, 2)
    hive.append_directly(100)

    with pytest.raises(
        InvalidTableStateError, match="was bypassed: the storage has version 3, but the metastore is at 2"
    ):
        clean_up(hive)

    assert versions(hive) == [1, 2, 3]


def test_a_table_without_data_has_nothing_to_clean_up(stored: Maintained) -> None:
    with pytest.raises(TableVersionNotFoundError, match="nothing has been written"):
        clean_up(stored)
