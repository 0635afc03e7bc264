"""Each verb on stores that lack something of S3: right results, or a refusal that says what to do."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path

import lance
import pytest
from lance_namespace.errors import ErrorCode

from airflow_provider_lancens.namespace.property_keys import STORAGE_PREFIX
from airflow_provider_lancens.namespace.storage import conditional_writes, object_store
from airflow_provider_lancens.namespace.storage.table_files import TableFiles
from airflow_provider_lancens.spark import NamespaceSpec
from airflow_provider_lancens.spark.commit.delete import delete_rows
from airflow_provider_lancens.spark.maintenance.clean_up import clean_up_versions
from airflow_provider_lancens.spark.maintenance.orphans import remove_orphans
from airflow_provider_lancens.spark.maintenance.restore import restore_version
from tests.conformance.codes import refused_with
from tests.counted_requests import counted_requests
from tests.old_table import ROW
from tests.servers.s3_double import S3Double
from tests.servers.s3_link import Fault
from tests.servers.s3_requests import BULK_DELETE, LIST, PUT, Request
from tests.support.bookmarks import delete_bookmark, find_bookmark, move_bookmark

LOCATION = "s3://lake/t.lance"


@pytest.fixture
def s3() -> Iterator[S3Double]:
    with S3Double("lake") as double:
        lance.write_dataset(ROW, LOCATION, storage_options=double.storage)
        yield double


@pytest.fixture
def spec(s3: S3Double) -> NamespaceSpec:
    storage = {f"{STORAGE_PREFIX}{name}": value for name, value in s3.storage.items()}
    return NamespaceSpec("dir", {"root": "s3://lake", **storage})


def refusing(kind: str, status: HTTPStatus, code: str) -> Callable[[Request], Fault | None]:
    return lambda request: Fault(refusal=(status, code)) if request.kind == kind else None


def newest(s3: S3Double) -> int:
    return int(lance.dataset(LOCATION, storage_options=s3.storage).version)


def without_bulk_deletes(s3: S3Double) -> None:
    s3.fault = refusing(BULK_DELETE, HTTPStatus.NOT_IMPLEMENTED, "NotImplemented")


def with_conflicts(s3: S3Double) -> None:
    """Refuse each first creation of a file with a conflict, with nothing stored."""
    refused = set()

    def fault(request: Request) -> Fault | None:
        if request.kind != PUT or "/data/" in request.key or request.key in refused:
            return None
        refused.add(request.key)
        creates = "/_lancens/conditional" in request.key or request.key.endswith(".manifest")
        return Fault(refusal=(HTTPStatus.CONFLICT, "ConditionalRequestConflict")) if creates else None

    s3.fault = fault


@pytest.mark.parametrize("lessen", [without_bulk_deletes, with_conflicts])
def test_every_verb_works(s3: S3Double, spec: NamespaceSpec, lessen: Callable[[S3Double], None]) -> None:
    lessen(s3)

    deleted = delete_rows(spec, "t", "n = 1", key="january", execution_id="1")
    again = delete_rows(spec, "t", "n = 1", key="january", execution_id="1")
    restored = restore_version(spec, "t", 1)
    move_bookmark(spec, "t", "reader", 2)
    assert find_bookmark(spec, "t", "reader").version == 2  # type: ignore[union-attr]
    assert delete_bookmark(spec, "t", "reader")
    assert (deleted.version, again.version, again.is_done, restored.version) == (2, 2, False, 3)
    assert [key for key in s3.bucket.keys if "/writes/" in key] == [], "no lease is left"
    clean_up_versions(spec, "t", older_than=timedelta(0))
    remove_orphans(spec, "t")
    assert newest(s3) == 3
    assert lance.dataset(LOCATION, storage_options=s3.storage).count_rows() == ROW.num_rows


def test_without_the_right_to_delete_writes_succeed_and_removals_name_it(
    s3: S3Double, spec: NamespaceSpec, caplog: pytest.LogCaptureFixture
) -> None:
    s3.may_delete = False

    delete_rows(spec, "t", "n = 1", key="january")
    restored = restore_version(spec, "t", 1)
    rerun = delete_rows(spec, "t", "n = 1", key="january")

    assert (restored.version, rerun.version, newest(s3)) == (3, 4, 4)
    assert "s3:DeleteObject" in caplog.text
    move_bookmark(spec, "t", "reader", 2)
    with refused_with(ErrorCode.PERMISSION_DENIED, "s3:DeleteObject"):
        delete_bookmark(spec, "t", "reader")
    with refused_with(ErrorCode.PERMISSION_DENIED, "s3:DeleteObject"):
        clean_up_versions(spec, "t", older_than=timedelta(0))


def test_a_denied_listing_refuses_each_verb_for_good(s3: S3Double, spec: NamespaceSpec) -> None:
    denied = Fault(refusal=(HTTPStatus.FORBIDDEN, "AccessDenied"))
    s3.fault = lambda one: denied if one.kind == LIST and one.key.startswith("t.lance/_") else None

    for verb in (
        lambda: delete_rows(spec, "t", "n = 1", key="january"),
        lambda: restore_version(spec, "t", 1),
        lambda: clean_up_versions(spec, "t"),
    ):
        with refused_with(ErrorCode.PERMISSION_DENIED, "s3:ListBucket"):
            verb()


def test_a_store_that_overwrites_is_refused_before_anything_is_committed(
    s3: S3Double, spec: NamespaceSpec
) -> None:
    s3.checks_conditions = False

    for _ in range(2):
        with refused_with(ErrorCode.UNSUPPORTED, "ignores If-None-Match", "managed_by=impl"):
            delete_rows(spec, "t", "n = 1")
    assert newest(s3) == 1


def test_a_store_is_tried_by_the_first_commit_of_a_process_alone(s3: S3Double, spec: NamespaceSpec) -> None:
    tried: list[Request] = []
    s3.gate = lambda request: tried.append(request) if "conditional-writes" in request.key else None

    delete_rows(spec, "t", "n = 1")
    first = len(tried)
    delete_rows(spec, "t", "n = 2")

    assert (first, len(tried)) == (2, 2)


def test_a_known_store_costs_one_request_of_a_process(s3: S3Double) -> None:
    files = TableFiles(LOCATION, s3.storage)
    conditional_writes.require_conditional_writes(files)
    conditional_writes._supporting.clear()  # as in another process

    with s3.counted() as requests:
        conditional_writes.require_conditional_writes(files)
        conditional_writes.require_conditional_writes(files)
    assert requests == {PUT: 1}


def test_nothing_is_known_of_a_store_whose_address_another_one_had_before() -> None:
    with S3Double() as s3:
        files = TableFiles(LOCATION, s3.storage)
        conditional_writes.require_conditional_writes(files)
        object_store._without_bulk_deletes.add(files.store_id)
        s3.forget()
        assert files.supports_bulk_deletes
        with s3.counted() as requests:
            conditional_writes.require_conditional_writes(files)
    assert requests == {PUT: 1}


def test_local_files_are_not_tried(tmp_path: Path) -> None:
    with counted_requests() as requests:
        conditional_writes.require_conditional_writes(TableFiles(str(tmp_path), {}))
    assert not requests
