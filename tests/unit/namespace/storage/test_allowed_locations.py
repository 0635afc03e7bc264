"""The locations that a connection's credentials are used for."""

from pathlib import Path

import pytest
from lance_namespace.errors import InvalidInputError, PermissionDeniedError

from airflow_provider_lancens.namespace.storage.allowed_locations import AllowedLocations

LAKE = AllowedLocations.parse("s3://lake/sales, abfss://c@a.dfs.core.windows.net/lake", "s3://lake/root")


@pytest.mark.parametrize(
    "location",
    [
        "s3://lake/sales/t.lance",
        "s3a://lake/sales/t.lance",
        "s3://lake/root/db-lance/t.lance",
        "s3://lake/sales",
        "abfss://c@a.dfs.core.windows.net/lake/t.lance",
    ],
)
def test_a_location_below_a_prefix_or_the_root_is_allowed(location: str) -> None:
    LAKE.check(location, "table a$b")


@pytest.mark.parametrize(
    "location",
    [
        "s3://lake/salesman/t.lance",
        "s3://lake/t.lance",
        "s3://other/sales/t.lance",
        "/sales/t.lance",
        "s3://lake/sales/../t.lance",
        "s3://lake/sales/%2e%2e/t.lance",
        "file:///etc",
        "gs://lake/sales/t",
        "abfss://other@a.dfs.core.windows.net/lake/t.lance",
    ],
)
def test_another_location_is_refused_with_the_setting(location: str) -> None:
    with pytest.raises(PermissionDeniedError, match=r"table a\$b: .* is not below .*'allowed_locations'"):
        LAKE.check(location, "table a$b")


def test_a_link_does_not_lead_out_of_a_prefix(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (inside / "link").symlink_to(outside)
    allowed = AllowedLocations.parse(str(inside), str(inside / "root"))
    allowed.check(str(inside / "t.lance"), "table a$b")
    with pytest.raises(PermissionDeniedError):
        allowed.check(str(inside / "link" / "t.lance"), "table a$b")


@pytest.mark.parametrize("text", [" , ", "*"])
def test_without_prefixes_each_location_is_allowed(text: str) -> None:
    AllowedLocations.parse(text, "/root").check("s3://anywhere/t", "table a$b")


@pytest.mark.parametrize(
    ("reference", "table"),
    [
        ("s3a://lake/raw/a.mp4", "s3://lake/t.lance"),
        ("s3://lake/t.lance/a b.mp4", "s3://lake/t.lance"),
        ("file:///raw/a.mp4", "/lake/t.lance"),
    ],
)
def test_what_a_table_refers_to_in_its_own_store_is_read(reference: str, table: str) -> None:
    AllowedLocations().check_reference(reference, table, "column video")


@pytest.mark.parametrize(
    ("reference", "table"),
    [
        ("file:///etc/passwd", "s3://lake/t.lance"),
        ("/proc/self/environ", "s3://lake/t.lance"),
        ("FILE:///etc/passwd", "s3://lake/t.lance"),
        ("s3://payroll/a.mp4", "s3://lake/t.lance"),
        ("http://169.254.169.254/latest", "s3://lake/t.lance"),
        ("https://lake/t.lance", "s3://lake/t.lance"),
        ("s3://lake/../x", "s3://lake/t.lance"),
        ("s3://lake/a", "/lake/t.lance"),
    ],
)
def test_what_a_table_refers_to_in_another_store_is_not_read(reference: str, table: str) -> None:
    with pytest.raises(PermissionDeniedError, match="column video: ") as refusal:
        AllowedLocations().check_reference(reference, table, "column video")
    assert str(refusal.value).isprintable()
    AllowedLocations.parse("*", "").check_reference(reference, table, "column video")


def test_with_prefixes_a_table_refers_to_files_below_itself_or_one_of_them() -> None:
    for reference in ("s3://lake/t.lance/a", "s3://lake/sales/a"):
        LAKE.check_reference(reference, "s3://lake/t.lance", "column video")
    for reference in ("s3://lake/payroll/a", "s3://lake/t.lance-2/a", "file:///etc/passwd"):
        with pytest.raises(PermissionDeniedError, match="'allowed_locations'"):
            LAKE.check_reference(reference, "s3://lake/t.lance", "column video")


@pytest.mark.parametrize("text", ["lake", "s3://b/x,../y", "hdfs://nn/x", "s3://b/x#y", "s3://k:hush@b/x"])
def test_an_invalid_prefix_is_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidInputError, match="property 'allowed_locations'") as refusal:
        AllowedLocations.parse(text, "/root")
    assert "hush" not in str(refusal.value)
