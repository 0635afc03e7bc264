"""Locations that are equal, or inside another one."""

from pathlib import Path

import pytest

from airflow_provider_lancens.namespace.storage.location_overlap import ResolvedLocation


def overlap(one: str, other: str) -> bool:
    found = ResolvedLocation(one).overlaps(ResolvedLocation(other))
    assert ResolvedLocation(other).overlaps(ResolvedLocation(one)) is found
    return found


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/lake/a.lance", "file:/lake/a.lance"),
        ("/lake/a.lance", "file:///lake//a.lance/"),
        ("/lake/a.lance", "FILE://localhost/lake/./b/../a.lance"),
        ("/lake/a b.lance", "file:/lake/a%20b.lance"),
        ("/lake/a%20b.lance", "file:/lake/a%20b.lance"),
        ("/lake/a.lance", "/lake/a.lance/data/b.lance"),
        ("s3://bucket/a.lance", "s3a://bucket/a.lance/"),
        ("s3://bucket/a.lance", "S3N://Bucket//x/../a.lance/data"),
        ("s3://bucket/a b.lance", "s3://bucket/a%20b.lance"),
        ("s3://bucket/a.lance", "s3://bucket"),
        ("s3://bucket/a.lance", "s3a://KEY:SECRET@bucket/a.lance"),
        ("hdfs://nn/a", "hdfs://NN:8020/a"),
    ],
)
def test_two_notations_are_one_location(one: str, other: str) -> None:
    assert overlap(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/lake/a.lance", "/lake/a.lance2"),
        ("s3://bucket/x/db.db/", "s3://bucket/x/db.db-lance/t.lance"),
        ("s3://bucket/a.lance", "s3://bucket2/a.lance"),
        ("s3://bucket/a.lance", "gs://bucket/a.lance"),
        ("abfss://one@account.example/a", "abfss://two@account.example/a"),
        ("s3://bucket/a.lance", "/bucket/a.lance"),
        ("/lake/a.lance", "a.lance"),
        ("/lake/no/such", "/lake/none/other"),
    ],
)
def test_sibling_folders_are_two_locations(one: str, other: str) -> None:
    assert not overlap(one, other)


def test_a_link_is_resolved_to_its_target(tmp_path: Path) -> None:
    (tmp_path / "real" / "a.lance" / "data").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "deep").symlink_to(tmp_path / "real" / "a.lance" / "data")
    real = str(tmp_path / "real" / "a.lance")
    assert overlap(real, f"file:{tmp_path}/link/a.lance")
    assert overlap(real, f"{tmp_path}/link/a.lance/data/b.lance")
    assert overlap(real, f"{tmp_path}/deep/b.lance")
    assert overlap(f"{tmp_path}/link/a.lance/data/b.lance", real)
    assert not overlap(real, f"{tmp_path}/link/b.lance")


def test_a_parent_folder_contains_its_children(tmp_path: Path) -> None:
    inner, outer = ResolvedLocation(str(tmp_path / "x" / "y")), ResolvedLocation(str(tmp_path / "x"))
    assert inner.lies_in(outer)
    assert inner.lies_in(inner)
    assert not outer.lies_in(inner)
