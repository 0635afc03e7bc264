"""A commit on an object store is announced while Lance prepares it, and made only once it is announced."""

import threading
import time
from collections.abc import Iterator
from http import HTTPStatus

import lance
import pytest
from lance_namespace.errors import PermissionDeniedError

from airflow_provider_lancens.namespace.property_keys import STORAGE_PREFIX
from airflow_provider_lancens.spark import NamespaceSpec
from airflow_provider_lancens.spark.commit.delete import delete_rows
from tests.old_table import ROW
from tests.servers.s3_double import S3Double
from tests.servers.s3_link import Fault
from tests.servers.s3_requests import GET, HEAD, LIST, PUT, Request

LOCATION = "s3://lake/t.lance"
SECONDS = 30


@pytest.fixture
def s3() -> Iterator[S3Double]:
    with S3Double("lake") as double:
        lance.write_dataset(ROW, LOCATION, storage_options=double.storage)
        yield double


@pytest.fixture
def spec(s3: S3Double) -> NamespaceSpec:
    storage = {f"{STORAGE_PREFIX}{name}": value for name, value in s3.storage.items()}
    return NamespaceSpec("dir", {"root": "s3://lake", **storage})


def announces(request: Request) -> bool:
    return request.kind == PUT and "/_lancens/keys/" in request.key and not request.key.endswith(".committed")


def stages(request: Request) -> bool:
    return request.kind == PUT and ".manifest-" in request.key


def creates(request: Request) -> bool:
    return request.kind == PUT and request.key.endswith(".manifest")


def version_of(s3: S3Double) -> int:
    return int(lance.dataset(LOCATION, storage_options=s3.storage).version)


def test_a_version_is_created_only_once_its_key_is_announced(s3: S3Double, spec: NamespaceSpec) -> None:
    delete_rows(spec, "t", "n > 7", key="earlier")
    is_staged, announced_at, created_at = threading.Event(), [], []

    def gate(request: Request) -> None:
        if stages(request):
            is_staged.set()
        if announces(request):
            assert is_staged.wait(SECONDS)
            time.sleep(0.3)  # time in which a commit that doesn't wait would be made
            announced_at.append(time.monotonic())
        if creates(request):
            created_at.append(time.monotonic())

    s3.gate = gate
    delete_rows(spec, "t", "n = 1", key="january")

    assert len(announced_at) == len(created_at) == 1
    assert announced_at < created_at
    assert version_of(s3) == 3


def test_a_commit_that_cannot_be_announced_is_not_made(s3: S3Double, spec: NamespaceSpec) -> None:
    refusal = Fault(refusal=(HTTPStatus.FORBIDDEN, "AccessDenied"))
    s3.fault = lambda request: refusal if announces(request) else None

    with pytest.raises(PermissionDeniedError):
        delete_rows(spec, "t", "n = 1", key="january")

    assert version_of(s3) == 1
    assert not [key for key in s3.bucket.objects if ".manifest-" in key or "/_lancens/writes/" in key]


def test_a_commit_leaves_neither_its_lease_nor_its_staged_manifest(s3: S3Double, spec: NamespaceSpec) -> None:
    with s3.counted() as requests:
        delete_rows(spec, "t", "n = 1", key="january")

    assert requests["bulk delete"] == 1
    assert not [key for key in s3.bucket.objects if ".manifest-" in key or "/_lancens/writes/" in key]


def test_a_key_is_looked_up_while_the_version_is_opened(s3: S3Double, spec: NamespaceSpec) -> None:
    delete_rows(spec, "t", "n = 1", key="january")
    both, waited = threading.Barrier(2), set()

    def gate(request: Request) -> None:
        opens = request.kind in (HEAD, GET) and request.key.endswith(".manifest")
        looks_up = request.kind == LIST and "/_lancens/keys/" in request.key
        if (opens or looks_up) and opens not in waited:
            waited.add(opens)
            both.wait(SECONDS)

    s3.gate = gate

    assert not delete_rows(spec, "t", "n = 1", key="january", on_existing_key="skip").is_done
