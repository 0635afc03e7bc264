"""Releases that are refused, most of them before anything is read."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lance_namespace.errors import ConcurrentModificationError, InvalidInputError

from airflow_provider_lancens import connect
from airflow_provider_lancens.namespace.error_types import PassedVersionError
from airflow_provider_lancens.spark import NamespaceSpec, WriteIdentity
from airflow_provider_lancens.spark.release_sets import move_release_set

NOWHERE = NamespaceSpec("dir", {"root": "/nowhere"})


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({}, "tables: expected at least one table"),
        ({"orders$": 1}, "tables: expected identifiers"),
        *(
            ({"a$b": version}, r"tables\['a\$b'\]: expected a version, a whole number of at least 1")
            for version in (True, 1.9, "x", None, 0)
        ),
        ({"a$b": 1, "A$b": 2}, r"tables: a\$b is listed twice"),
    ],
)
def test_tables_without_a_version_each_are_refused(tables: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        move_release_set(NOWHERE, "shop$daily", tables)


@pytest.mark.parametrize("keep", [0, True, 1.5])
def test_an_invalid_number_of_releases_to_keep_is_refused(keep: Any) -> None:
    with pytest.raises(InvalidInputError, match="keep_releases: expected a whole number of at least 1"):
        move_release_set(NOWHERE, "shop$daily", {"a$b": 1}, keep_releases=keep)


def test_a_flag_that_is_neither_true_nor_false_is_refused() -> None:
    text: Any = "false"
    with pytest.raises(InvalidInputError, match=r"^allow_older: expected True or False, got 'false'"):
        move_release_set(NOWHERE, "shop$daily", {"a$b": 1}, allow_older=text)


def test_an_expected_version_that_the_release_set_has_passed_is_told_from_one_that_it_may_reach(
    tmp_path: Path,
) -> None:
    lake = connect("dir", {"root": str(tmp_path)})
    for name in ("orders", "daily"):
        lake.declare_table(name)
    lake.table("orders").append(pa.table({"n": [1]}))
    daily = lake.release_set("daily")
    assert daily.release({"orders": 1}, expected_version=0).version == 1

    with pytest.raises(PassedVersionError, match=r"is at version 1, but expected_version=0; nothing was"):
        daily.release({"orders": 1}, expected_version=0)
    with pytest.raises(ConcurrentModificationError, match="is at version 1, but expected_version=2") as early:
        daily.release({"orders": 1}, expected_version=2)
    assert not isinstance(early.value, PassedVersionError)


@pytest.mark.parametrize("execution_id", [None, "a run of a task"])
def test_other_versions_under_the_key_of_a_release_are_refused_with_what_to_do(
    tmp_path: Path, execution_id: str | None
) -> None:
    lake = connect("dir", {"root": str(tmp_path)})
    for name in ("orders", "daily"):
        lake.declare_table(name)
    for number in range(2):
        lake.table("orders").append(pa.table({"n": [number]}))
    daily = lake.release_set("daily")
    daily.release({"orders": 1}, key=WriteIdentity("monday", execution_id=execution_id))

    with pytest.raises(InvalidInputError, match="Release these versions under another key") as refused:
        daily.release({"orders": 2}, key=WriteIdentity("monday", execution_id=execution_id))
    assert "on_existing_key" not in str(refused.value), "an argument that a release doesn't have"
