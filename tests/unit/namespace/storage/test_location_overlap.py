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


@pytest.mark.parametrize(
    "other", ["file:///a%00b", "/a\x00b", "/" + "x/" * 5000, "/" + "x" * 5000, "\ud893", ""]
)
def test_any_location_of_another_table_can_be_compared(other: str, tmp_path: Path) -> None:
    mine = ResolvedLocation(str(tmp_path))
    assert not ResolvedLocation(other).overlaps(mine)
    assert not ResolvedLocation(other).lies_only_in(mine)


def test_a_circle_of_links_can_be_compared(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    assert not ResolvedLocation(str(tmp_path / "a")).overlaps(ResolvedLocation("/elsewhere"))


def test_a_location_lies_only_in_a_folder_if_no_reading_leaves_it(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (inside / "link").symlink_to(outside)
    folder = ResolvedLocation(str(inside))
    assert ResolvedLocation(f"file://{inside}/t.lance").lies_only_in(folder)
    assert not ResolvedLocation(f"{inside}/link/t.lance").lies_only_in(folder)
    assert not ResolvedLocation(f"{inside}/%2e%2e/outside").lies_only_in(folder)
    assert not ResolvedLocation(f"{inside}2/t.lance").lies_only_in(folder)
