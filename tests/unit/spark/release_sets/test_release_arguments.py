"""Releases that are refused before anything is read."""

from typing import Any

import pytest
from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.spark import NamespaceSpec
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
