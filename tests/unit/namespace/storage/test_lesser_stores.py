"""Stores that lack something of S3: each works, or is refused with what is missing."""

import os
import sys
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import lance
import obstore
import pyarrow as pa
import pytest
from lance_namespace.errors import ErrorCode, ServiceUnavailableError

from airflow_provider_lancens.namespace.managed.publication import CommitRecord, Publication
from airflow_provider_lancens.namespace.storage import object_store, purge
from airflow_provider_lancens.namespace.storage.manifests import Manifests
from airflow_provider_lancens.namespace.storage.object_store import latest_version, manifest_names
from airflow_provider_lancens.namespace.storage.storage_errors import storage_error
from airflow_provider_lancens.namespace.storage.version_tags import create_branch, create_tag, delete_tag
from tests.conformance.codes import refused_with
from tests.servers.no_hard_links import printed_without_hard_links
from tests.servers.s3_bucket import Stored
from tests.servers.s3_double import S3Double
from tests.servers.s3_link import Fault
from tests.servers.s3_requests import BULK_DELETE, DELETE, LIST, PUT, Request

LOCATION = "s3://lake/t.lance"


@pytest.fixture
def s3() -> Iterator[S3Double]:
    with S3Double() as double:
        yield double


@pytest.fixture
def files(s3: S3Double) -> Manifests:
    return Manifests(LOCATION, s3.storage)


def refuse(s3: S3Double, kind: str, status: HTTPStatus, code: str, times: int = 1000) -> None:
    """Refuse this kind of requests so many times."""
    left = [times]

    def fault(request: Request) -> Fault | None:
        if request.kind != kind or not left[0]:
            return None
        left[0] -= 1
        return Fault(refusal=(status, code))

    s3.fault = fault


def versions(s3: S3Double, count: int) -> None:
    for version in range(1, count + 1):
        s3.bucket.put(f"t.lance/_versions/{manifest_names(version)[0]}", Stored.of(b""))


def test_the_newest_version_is_found_by_a_listing_in_no_order(s3: S3Double) -> None:
    s3.lists_in_order = False
    versions(s3, 1301)  # the newest is not on the first page

    assert latest_version(LOCATION, s3.storage) == 1301


def test_the_newest_version_costs_one_page_of_a_listing_by_name(s3: S3Double) -> None:
    versions(s3, 1303)

    with s3.counted() as requests:
        assert latest_version(LOCATION, s3.storage) == 1303
    assert requests == {LIST: 1}


def test_a_directory_bucket_is_addressed_and_listed_as_one() -> None:
    options = {"aws_region": "us-east-1", "aws_access_key_id": "a", "aws_secret_access_key": "b"}
    store = object_store.open_store("s3a://lake--use1-az4--x-s3/t", options)

    assert store.config["s3_express"] == "true"  # type: ignore[union-attr]
    assert object_store.is_directory_bucket("s3a://lake--use1-az4--x-s3/t")
    assert "s3_express" not in object_store.open_store("s3://lake/t", options).config  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (HTTPStatus.NOT_IMPLEMENTED, "NotImplemented"),
        (HTTPStatus.METHOD_NOT_ALLOWED, "MethodNotAllowed"),
        (HTTPStatus.FORBIDDEN, "AccessDenied"),
        (HTTPStatus.BAD_REQUEST, "InvalidRequest"),
        (HTTPStatus.NOT_FOUND, "NotFound"),
    ],
)
def test_a_store_without_bulk_deletes_is_asked_for_single_ones(
    s3: S3Double, files: Manifests, status: HTTPStatus, code: str
) -> None:
    refuse(s3, BULK_DELETE, status, code)
    for name in "abc":
        files.put(name, b"")

    files.remove("a", "b", "missing")
    with s3.counted() as later:
        files.remove("c")

    assert s3.bucket.keys == []
    assert later == {DELETE: 1}, "the refusal is remembered"


def test_a_transient_failure_of_a_bulk_delete_is_not_taken_for_a_refusal(
    s3: S3Double, files: Manifests
) -> None:
    refuse(s3, BULK_DELETE, HTTPStatus.SERVICE_UNAVAILABLE, "SlowDown")
    with refused_with(ErrorCode.SERVICE_UNAVAILABLE, "SlowDown"), s3.counted() as requests:
        files.remove("a", "b")
    assert DELETE not in requests


def test_a_drop_deletes_one_by_one_where_bulk_deletes_are_refused(s3: S3Double) -> None:
    lance.write_dataset(pa.table({"x": [1]}), LOCATION, storage_options=s3.storage)
    refuse(s3, BULK_DELETE, HTTPStatus.NOT_IMPLEMENTED, "NotImplemented")
    plan = purge.plan(LOCATION, s3.storage)

    assert plan.files == len(s3.bucket.keys) > 2
    assert purge.remove(LOCATION, s3.storage) == plan.files
    assert s3.bucket.keys == []


def test_a_tag_is_deleted_where_bulk_deletes_are_refused(s3: S3Double) -> None:
    dataset = lance.write_dataset(pa.table({"x": [1]}), LOCATION, storage_options=s3.storage)
    refuse(s3, BULK_DELETE, HTTPStatus.NOT_IMPLEMENTED, "NotImplemented")
    create_tag(dataset, Manifests(LOCATION, s3.storage), "january", 1)

    assert delete_tag(dataset, "january")
    assert not delete_tag(dataset, "january")
    assert not dataset.tags.list()


@pytest.mark.parametrize("times", [1, 3])
def test_a_tag_is_created_after_a_conflict_with_nothing_stored(
    s3: S3Double, files: Manifests, times: int
) -> None:
    dataset = lance.write_dataset(pa.table({"x": [1]}), LOCATION, storage_options=s3.storage)
    refuse(s3, PUT, HTTPStatus.CONFLICT, "ConditionalRequestConflict", times)

    assert create_tag(dataset, files, "january", 1)
    refuse(s3, PUT, HTTPStatus.CONFLICT, "ConditionalRequestConflict")
    assert not create_tag(dataset, files, "january", 1)
    assert dataset.tags.list()["january"]["version"] == 1


@pytest.mark.parametrize("refused", ["/tree/b/_versions/", "/_refs/branches/"])
def test_a_branch_is_created_after_a_conflict_with_nothing_stored(
    s3: S3Double, files: Manifests, refused: str
) -> None:
    dataset = lance.write_dataset(pa.table({"x": [1]}), LOCATION, storage_options=s3.storage)
    left = [Fault(refusal=(HTTPStatus.CONFLICT, "ConditionalRequestConflict"))]
    s3.fault = lambda one: left.pop() if one.creates and refused in f"/{one.key}" and left else None

    assert create_branch(dataset, files, "b", 1)
    assert not create_branch(dataset, files, "b", 1)
    assert not left
    assert dataset.checkout_version(("b", None)).count_rows() == 1


def test_a_branch_that_another_client_left_unfinished_is_said_to_be(s3: S3Double, files: Manifests) -> None:
    dataset = lance.write_dataset(pa.table({"x": [1]}), LOCATION, storage_options=s3.storage)
    dataset.create_branch("b", (None, 1))
    s3.bucket.remove("t.lance/_refs/branches/b.json")

    with refused_with(ErrorCode.CONCURRENT_MODIFICATION, "remove folder tree/b"):
        create_branch(dataset, files, "b", 1)


def test_a_denied_deletion_names_the_right(s3: S3Double, files: Manifests) -> None:
    s3.may_delete = False
    files.put("a", b"")
    with refused_with(ErrorCode.PERMISSION_DENIED, "delete objects (s3:DeleteObject)"):
        files.remove("a")


def test_outdated_files_that_may_not_be_deleted_are_left_with_a_warning(
    s3: S3Double, files: Manifests, caplog: pytest.LogCaptureFixture
) -> None:
    s3.may_delete = False
    files.put("a", b"")

    files.remove_outdated("a")

    assert "left behind, such as a" in caplog.text
    assert "s3:DeleteObject" in caplog.text


def test_a_bulk_delete_of_lance_that_the_store_lacks_names_the_property(s3: S3Double) -> None:
    refuse(s3, BULK_DELETE, HTTPStatus.NOT_IMPLEMENTED, "NotImplemented")
    dataset = lance.write_dataset(pa.table({"x": [1]}), LOCATION, storage_options=s3.storage)
    create_tag(dataset, Manifests(LOCATION, s3.storage), "january", 1)
    with pytest.raises(OSError, match="delete") as caught:
        dataset.tags.delete("january")

    converted = storage_error(caught.value, LOCATION)
    assert converted.code == ErrorCode.UNSUPPORTED
    assert "storage.aws_disable_bulk_delete=true" in str(converted)


def test_conditional_writes_that_are_turned_off_are_named(s3: S3Double) -> None:
    files = Manifests(LOCATION, {**s3.storage, "aws_conditional_put": "disabled"})

    with refused_with(ErrorCode.UNSUPPORTED, "remove property storage.aws_conditional_put"):
        files.create("a", b"")


@pytest.mark.parametrize("times", [1, 3])
def test_a_conflict_with_nothing_stored_is_tried_again(s3: S3Double, files: Manifests, times: int) -> None:
    refuse(s3, PUT, HTTPStatus.CONFLICT, "ConditionalRequestConflict", times)

    assert files.create("a", b"mine")
    assert files.read("a") == b"mine"


def test_a_conflict_with_something_stored_is_lost(s3: S3Double, files: Manifests) -> None:
    obstore.put(object_store.open_store(LOCATION, s3.storage), "a", b"theirs")  # type: ignore[arg-type]
    refuse(s3, PUT, HTTPStatus.CONFLICT, "ConditionalRequestConflict")

    assert not files.create("a", b"mine")


def test_a_conflict_that_lasts_is_an_error_and_not_a_lost_race(
    s3: S3Double, files: Manifests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("airflow_provider_lancens.namespace.storage.table_files._CONFLICT_SECONDS", 0)
    refuse(s3, PUT, HTTPStatus.CONFLICT, "ConditionalRequestConflict")

    with refused_with(ErrorCode.SERVICE_UNAVAILABLE, "nothing was written, run it again"):
        files.create("a", b"mine")


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (HTTPStatus.FORBIDDEN, ErrorCode.PERMISSION_DENIED),
        (HTTPStatus.UNAUTHORIZED, ErrorCode.UNAUTHENTICATED),
    ],
)
def test_a_denied_listing_has_the_code_of_any_denied_request(
    s3: S3Double, files: Manifests, status: HTTPStatus, code: ErrorCode
) -> None:
    refuse(s3, LIST, status, "AccessDenied")
    named = "list objects (s3:ListBucket)" if status == HTTPStatus.FORBIDDEN else "storage.*"
    with refused_with(code, named):
        latest_version(LOCATION, s3.storage)
    with refused_with(code, named):
        files.below("_lancens")


def test_two_failures_of_one_kind_have_one_text(s3: S3Double) -> None:
    refuse(s3, LIST, HTTPStatus.INTERNAL_SERVER_ERROR, "InternalError")
    said = set()
    for _ in range(2):
        with pytest.raises(ServiceUnavailableError) as caught:
            latest_version(LOCATION, s3.storage)
        said.add(str(caught.value))

    assert len(said) == 1


@pytest.fixture
def staged(files: Manifests) -> Publication:
    publication = Publication(CommitRecord(1, "1.manifest-0b1c"))
    files.put(publication.commit.staged_path, b"manifest")
    return publication


def test_no_commit_is_made_whose_record_was_not_written(
    s3: S3Double, files: Manifests, staged: Publication, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("airflow_provider_lancens.namespace.storage.table_files._CONFLICT_SECONDS", 0)
    refuse(s3, PUT, HTTPStatus.CONFLICT, "ConditionalRequestConflict")

    with refused_with(ErrorCode.SERVICE_UNAVAILABLE, "nothing was written"):
        staged.record(files)
    refuse(s3, PUT, HTTPStatus.CONFLICT, "ConditionalRequestConflict", times=1)
    staged.record(files)

    assert files.read(staged.commit.recorded_path) == b"manifest"


def test_no_commit_is_made_whose_record_is_another_manifest(files: Manifests, staged: Publication) -> None:
    files.put(staged.commit.recorded_path, b"other")

    with refused_with(ErrorCode.INVALID_TABLE_STATE, "nothing was committed"):
        staged.record(files)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process do without hard links")
def test_a_mount_without_hard_links_is_said_to_lack_them(tmp_path: Path) -> None:
    script = (
        "from airflow_provider_lancens.namespace.storage.table_files import TableFiles\n"
        f"files = TableFiles({str(tmp_path)!r}, {{}})\n"
        "files.put('a', b'')\n"
        "try:\n"
        "    files.create('b', b'')\n"
        "except Exception as error:\n"
        "    print(error.code.value, error)\n"
    )

    assert printed_without_hard_links(script).startswith(
        f"{ErrorCode.UNSUPPORTED.value} storage at {tmp_path} is on a mount without"
    )
    assert os.listdir(tmp_path) == ["a"]  # noqa: PTH208 the names alone
