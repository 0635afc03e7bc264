"""Locations as Lance takes them, and what can't be one."""

from pathlib import Path

import pytest
from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.namespace.locations import (
    absolute_root,
    as_uri,
    check_location,
    is_local,
    join,
    normalize,
)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("file:/x/y", "/x/y"),
        ("file:///x/y", "/x/y"),
        ("/x/my table", "/x/my table"),
        ("s3a://bucket/x", "s3://bucket/x"),
        ("s3n://bucket/x", "s3://bucket/x"),
        ("s3://bucket/x", "s3://bucket/x"),
        ("gs://bucket/x", "gs://bucket/x"),
    ],
)
def test_a_location_is_given_as_lance_takes_it(given: str, expected: str) -> None:
    assert normalize(given) == expected


@pytest.mark.parametrize(("given", "local"), [("/x", True), ("file:/x", True), ("s3://b/x", False)])
def test_local_is_what_lies_in_the_file_system(given: str, local: bool) -> None:
    assert is_local(given) is local


def test_a_local_path_is_sent_as_a_uri() -> None:
    assert as_uri("/x/y") == "file:///x/y"
    assert as_uri("s3://b/x") == "s3://b/x"


def test_joining_makes_no_double_slash() -> None:
    assert join("s3://b/x/", "y", "z") == "s3://b/x/y/z"


def test_a_relative_root_is_made_absolute_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute_root("lake") == f"{tmp_path}/lake"
    assert absolute_root(None) == str(tmp_path)
    assert absolute_root("s3://bucket/lake/") == "s3://bucket/lake"


def test_a_root_with_a_password_is_refused_and_not_shown() -> None:
    with pytest.raises(InvalidInputError, match="root") as refusal:
        absolute_root("s3://key:hush@bucket/lake")
    assert "hush" not in str(refusal.value)


@pytest.mark.parametrize("location", ["", " ", "x/y", "./x", "/x/../y", "s3://b/../x", "/x/\n", "/x/\ud893"])
def test_what_cannot_be_a_location_is_refused(location: str) -> None:
    with pytest.raises(InvalidInputError, match="location"):
        check_location(location)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("file:/x//y/", "/x/y"),
        ("//x", "/x"),
        ("/x/./y", "/x/y"),
        ("s3://b/x/", "s3://b/x"),
        ("s3a://b/x", "s3a://b/x"),
    ],
)
def test_a_location_loses_the_slashes_that_servers_drop(given: str, expected: str) -> None:
    assert check_location(given) == expected
