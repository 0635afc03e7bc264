"""Locations in Lance's notation, and invalid ones."""

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
def test_a_location_is_returned_in_lances_notation(given: str, expected: str) -> None:
    assert normalize(given) == expected


@pytest.mark.parametrize(("given", "local"), [("/x", True), ("file:/x", True), ("s3://b/x", False)])
def test_file_paths_and_file_uris_are_local(given: str, local: bool) -> None:
    assert is_local(given) is local


def test_a_local_path_is_sent_as_a_uri() -> None:
    assert as_uri("/x/y") == "file:///x/y"
    assert as_uri("s3://b/x") == "s3://b/x"


def test_joining_adds_no_double_slash() -> None:
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


@pytest.mark.parametrize("location", ["x/y", "./x", "file:x/y", "file:./x"])
def test_a_relative_location_is_refused_with_its_reason(location: str) -> None:
    with pytest.raises(InvalidInputError, match="relative"):
        check_location(location)


@pytest.mark.parametrize(
    "location",
    ["s3://key:hush@bucket/t", "s3://key:hu/sh@bucket/t", "s3://bucket/t?X-Amz-Signature=hush", "k:hush@b/t"],
)
def test_a_location_with_credentials_is_refused_and_not_shown(location: str) -> None:
    with pytest.raises(InvalidInputError, match=r"contains credentials.*storage\.\*") as refusal:
        check_location(location)
    assert not {"hush", "hu/sh"} & set(str(refusal.value).split())
    assert "bucket" not in str(refusal.value)


@pytest.mark.parametrize("location", ["", " ", "x/y", "./x", "/x/../y", "s3://b/../x", "/x/\n", "/x/\ud893"])
def test_an_invalid_location_is_refused(location: str) -> None:
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
def test_a_location_is_normalized_as_servers_do(given: str, expected: str) -> None:
    assert check_location(given) == expected
