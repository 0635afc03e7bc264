"""Locations in Lance's notation, and invalid ones."""

import os
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.namespace.locations import (
    Location,
    absolute_root,
    as_uri,
    check_location,
    is_local,
    join,
    location_fault,
    normalize,
    readings,
)
from tests.hostile_names import locations


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
        ("FILE:///x/y", "/x/y"),
        ("File:/x/y", "/x/y"),
        ("file://localhost/x/y", "/x/y"),
        ("S3A://bucket/X", "s3://bucket/X"),
        ("GS://bucket/x", "gs://bucket/x"),
    ],
)
def test_a_location_is_returned_in_lances_notation(given: str, expected: str) -> None:
    assert normalize(given) == expected


@pytest.mark.parametrize(
    ("given", "local"),
    [
        ("/x", True),
        ("file:/x", True),
        ("FILE:///x", True),
        ("/a://b", True),
        ("s3://b/x", False),
        ("S3://b/x", False),
    ],
)
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


@pytest.mark.parametrize("location", ["s3://b/run#1.lance", "s3://b/x?y=1", "s3://lake/la#ke/t.lance"])
def test_what_lance_drops_from_a_url_is_refused(location: str) -> None:
    """Lance and the object store drop it: two locations in the catalog would be one table."""
    for check in (check_location, Location.of, absolute_root):
        with pytest.raises(InvalidInputError, match="contains '#' or '\\?'"):
            check(location)


@pytest.mark.parametrize("location", ["S3://[", "s3://b[1]/x", "s3a://\u2105/x"])
def test_a_bucket_that_no_url_can_have_is_refused(location: str) -> None:
    with pytest.raises(InvalidInputError, match="has a bucket whose name isn't valid in a URL"):
        check_location(location)


@pytest.mark.parametrize("location", ["s3://b//x", "s3://b/x//y", "s3://b/./x", "s3://b/x/.", "s3://b/x "])
def test_a_url_that_lance_reads_as_another_one_is_refused(location: str) -> None:
    with pytest.raises(InvalidInputError, match="which Lance reads as another location"):
        check_location(location)


def test_a_number_sign_in_a_local_path_is_legal() -> None:
    assert (
        check_location("/lake/run#1.lance") == Location.of("file:///lake/run#1.lance") == "/lake/run#1.lance"
    )


UNUSABLE = [
    "hdfs://nn/t",
    "viewfs://c/t",
    "ofs://o/v/t",
    "wasbs://c@a.blob.core.windows.net/t",
    "oss://b/t",
    "cos://b/t",
    "tos://b/t",
    "http://169.254.169.254/t",
    "s3+ddb://b/t",
    "hf://datasets/a/b",
    "file-object-store:///etc",
    "memory://x",
    "abfs://c@a.dfs.core.windows.net/t",
]


@pytest.mark.parametrize("location", UNUSABLE)
def test_a_scheme_that_cannot_be_used_is_refused(location: str) -> None:
    for check in (check_location, Location.of, absolute_root):
        with pytest.raises(InvalidInputError, match=r"can't be used; supported: s3, gs, az, abfss .*'root'"):
            check(location)


@pytest.mark.parametrize(
    "location",
    [
        "file:///a%00b",
        "/a%00b",
        "/x/%2e%2e/y",
        "/x/%252e%252e/y",
        "s3://b/a%2F..%2Fb",
        "s3://b/x%0ay",
        "/x/\x1b[2J",
    ],
)
def test_what_is_meant_once_it_is_decoded_is_refused(location: str) -> None:
    with pytest.raises(InvalidInputError, match=r"contains '\.\.' or unprintable characters") as refusal:
        check_location(location)
    assert str(refusal.value).isprintable()


def test_a_very_long_location_is_refused_and_not_repeated() -> None:
    with pytest.raises(InvalidInputError, match="has 100001 characters") as refusal:
        check_location("/" + "x" * 100_000)
    assert len(str(refusal.value)) < 200


def test_a_local_uri_of_another_machine_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="names the host 'nas'"):
        check_location("file://nas/lake/t.lance")


def test_a_checked_location_survives_pickling() -> None:
    restored = pickle.loads(pickle.dumps(Location.of("s3a://b/x/")))
    assert (restored, type(restored)) == ("s3://b/x", Location)


@given(locations())
def test_whatever_others_wrote_is_refused_or_means_one_place(text: str) -> None:
    if fault := location_fault(text):
        assert fault.isprintable()
        return
    location = Location.of(text)
    for reading in readings(location):
        assert reading.isprintable()
        assert ".." not in reading.split("/")
    assert location == Location.of(str(location))  # it needs no further change
    if is_local(location):
        assert location == os.path.normpath(location)
        assert location.startswith("/")
