"""The doctor on stores and mounts that lack something: what it says, and that it leaves nothing behind."""

import sys
from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path

import pytest

from airflow_provider_lancens.doctor.checks import check_storage
from airflow_provider_lancens.doctor.findings import Finding
from tests.servers.no_hard_links import printed_without_hard_links
from tests.servers.s3_double import S3Double
from tests.servers.s3_link import Fault
from tests.servers.s3_requests import BULK_DELETE, LIST, PUT

LOCATION = "s3://lake/t.lance"


@pytest.fixture
def s3() -> Iterator[S3Double]:
    with S3Double() as double:
        yield double


def refuse(s3: S3Double, kind: str, status: HTTPStatus, code: str) -> None:
    s3.fault = lambda one: Fault(refusal=(status, code)) if one.kind == kind else None


def complaints(found: list[Finding]) -> list[str]:
    return [f"{one.level} {one.subject}: {one.text} {one.advice}" for one in found if one.level != "ok"]


def test_a_complete_store_is_all_right_and_left_empty(s3: S3Double) -> None:
    found = list(check_storage(LOCATION, s3.storage))

    assert complaints(found) == []
    assert len(found) == 6
    assert s3.bucket.keys == []


def test_a_local_folder_is_all_right_and_left_empty(tmp_path: Path) -> None:
    found = list(check_storage(str(tmp_path / "t"), {}))

    assert complaints(found) == []
    assert not list(tmp_path.rglob("*.*")), "no file is left"


def without_bulk_deletes(s3: S3Double) -> None:
    refuse(s3, BULK_DELETE, HTTPStatus.NOT_IMPLEMENTED, "NotImplemented")


def without_order(s3: S3Double) -> None:
    s3.lists_in_order = False


def without_conditions(s3: S3Double) -> None:
    s3.checks_conditions = False


def without_listings(s3: S3Double) -> None:
    refuse(s3, LIST, HTTPStatus.FORBIDDEN, "AccessDenied")


def without_writes(s3: S3Double) -> None:
    refuse(s3, PUT, HTTPStatus.FORBIDDEN, "AccessDenied")


def without_deletes(s3: S3Double) -> None:
    s3.may_delete = False


@pytest.mark.parametrize(
    ("lessen", "level", "said", "left"),
    [
        (without_bulk_deletes, "warning", "storage.aws_disable_bulk_delete=true", False),
        (without_order, "problem", "lists files in no order", False),
        (without_conditions, "problem", "managed_by=impl", False),
        (without_listings, "problem", "s3:ListBucket", False),
        (without_writes, "problem", "s3:PutObject", False),
        (without_deletes, "problem", "s3:DeleteObject", True),
    ],
)
def test_what_a_store_lacks_is_named_with_what_to_do(
    s3: S3Double, lessen: Callable[[S3Double], None], level: str, said: str, left: bool
) -> None:
    lessen(s3)

    found = complaints(list(check_storage(LOCATION, s3.storage)))

    assert any(one.startswith(level) and said in one for one in found), found
    assert bool(s3.bucket.keys) == left


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process do without hard links")
def test_a_mount_without_hard_links_is_named(tmp_path: Path) -> None:
    script = (
        "from airflow_provider_lancens.doctor.checks import check_storage\n"
        f"for one in check_storage({str(tmp_path)!r}, {{}}):\n"
        "    if one.level != 'ok':\n"
        "        print(one.level, one.subject, one.text)\n"
    )

    [line] = printed_without_hard_links(script).splitlines()
    assert line.startswith("problem storage ")
    assert "is on a mount without hard links" in line
    assert not list(tmp_path.rglob("*.*"))
