"""A clean-up of many versions on an object store: its requests, killed half-way, and beside a writer."""

import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import NoReturn

import lance
import pytest

from airflow_provider_lancens.namespace.property_keys import STORAGE_PREFIX
from airflow_provider_lancens.spark import ExpireResult, NamespaceSpec
from airflow_provider_lancens.spark.maintenance.clean_up import clean_up_versions
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable
from tests.old_table import commit, s3_table
from tests.servers.s3_double import S3Double
from tests.servers.s3_requests import BULK_DELETE, DELETE, GET, LIST, Request

pytestmark = pytest.mark.thorough

VERSIONS = 700
REMOVED = re.compile("/(_transactions|data|_versions)/")
CLEAN_UP = """
from datetime import timedelta
from airflow_provider_lancens.spark import NamespaceSpec
from airflow_provider_lancens.spark.maintenance.clean_up import clean_up_versions
clean_up_versions(NamespaceSpec("dir", {properties!r}), "orders", older_than=timedelta(0))
"""


@pytest.fixture
def s3() -> Iterator[S3Double]:
    with S3Double() as server:
        yield server


@pytest.fixture
def properties(s3: S3Double) -> dict[str, str]:
    storage = {STORAGE_PREFIX + name: value for name, value in s3.storage.items()}
    return {"root": f"s3://{s3.bucket_name}", **storage}


@pytest.fixture
def table(s3: S3Double) -> ResolvedTable:
    """A table of many versions, each with a data file, a transaction and a manifest of its own."""
    return s3_table(s3, "orders.lance", VERSIONS)


def clean_up(properties: dict[str, str]) -> ExpireResult:
    return clean_up_versions(NamespaceSpec("dir", properties), "orders", older_than=timedelta(0))


@contextmanager
def held_back(
    s3: S3Double, number: int, lost: Callable[[], object] = lambda: None
) -> Iterator[threading.Event]:
    """Let a bulk deletion of versions' files, the one of this number, wait until the end of the block.

    The event that it yields is set when that request has arrived.
    """
    arrived, released = threading.Event(), threading.Event()
    seen: list[Request] = []

    def gate(request: Request) -> None:
        if request.kind == BULK_DELETE and REMOVED.search(request.key):
            seen.append(request)
            if len(seen) == number:
                arrived.set()
                released.wait()
                lost()

    s3.gate = gate
    try:
        yield arrived
    finally:
        released.set()


def hang_up() -> NoReturn:
    raise ConnectionAbortedError


def opened(table: ResolvedTable) -> lance.LanceDataset:
    latest = table.open_latest()
    assert latest is not None
    return latest


def test_the_requests_are_a_read_per_version_and_a_deletion_per_thousand_files(
    s3: S3Double, table: ResolvedTable, properties: dict[str, str]
) -> None:
    with s3.counted() as seen:
        result = clean_up(properties)

    assert (result.versions, result.files) == (VERSIONS - 1, VERSIONS - 1)
    assert seen[GET] < VERSIONS + 100
    # And one each of the lease, of the record of the removal, and of marks of keys that an older one settled.
    assert seen[BULK_DELETE] <= 3 * VERSIONS // 1000 + 4
    assert not seen[DELETE]
    assert seen[LIST] < 300  # one of each shard of the keys, and of each folder
    assert [ref["version"] for ref in opened(table).version_refs()] == [VERSIONS]
    assert opened(table).to_table().num_rows == 1


def test_a_clean_up_that_was_killed_is_continued_by_the_next(
    s3: S3Double, table: ResolvedTable, properties: dict[str, str]
) -> None:
    with held_back(s3, 2, lost=hang_up) as arrived:
        process = subprocess.Popen([sys.executable, "-c", CLEAN_UP.format(properties=properties)])
        assert arrived.wait(240)
        process.kill()
        process.wait()
    left = [key for key in s3.bucket.keys if "/data/" in key]
    assert 1 < len(left) < VERSIONS

    with s3.counted() as seen:
        result = clean_up(properties)

    assert (result.versions, result.files) == (VERSIONS - 1, len(left) - 1)
    assert seen[BULK_DELETE] <= 6
    assert [ref["version"] for ref in opened(table).version_refs()] == [VERSIONS]
    assert len([key for key in s3.bucket.keys if "/data/" in key]) == 1
    assert opened(table).to_table().num_rows == 1


def test_what_a_writer_commits_meanwhile_is_kept(
    s3: S3Double, table: ResolvedTable, properties: dict[str, str]
) -> None:
    with held_back(s3, 1) as arrived:
        cleaning = threading.Thread(target=clean_up, args=(properties,))
        cleaning.start()
        assert arrived.wait(60)
        s3.gate = lambda request: None
        commit(table, VERSIONS + 1)
    cleaning.join()

    assert sorted(ref["version"] for ref in opened(table).version_refs()) == [VERSIONS, VERSIONS + 1]
    assert [opened(table).checkout_version(v).count_rows() for v in (VERSIONS, VERSIONS + 1)] == [1, 1]
