"""The cost of lookups, writes and reruns: an old table takes as many requests as a young one."""

from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from airflow_provider_lancens.spark.keys import look_up
from airflow_provider_lancens.spark.options import WriteIdentity
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable
from tests.old_table import commit, key_of, s3_table
from tests.servers.s3_double import S3Double

YOUNG, OLD = 10, 298
"""Versions."""
MOST = 10


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Double]:
    with S3Double() as server:
        yield server


@pytest.fixture(scope="module")
def tables(s3: S3Double) -> dict[int, ResolvedTable]:
    return {versions: s3_table(s3, f"{versions}.lance", versions) for versions in (YOUNG, OLD)}


def find(target: ResolvedTable, key: str) -> int | None:
    found = look_up(target, WriteIdentity(key, on_existing_key="skip")).earlier
    return None if found is None else found.version


def requests_of(s3: S3Double, work: Callable[[], object]) -> Counter[str]:
    with s3.counted() as seen:
        work()
    return seen


def test_an_old_table_contains_what_was_ingested(tables: dict[int, ResolvedTable]) -> None:
    latest = tables[OLD].open_latest()

    assert latest is not None
    assert (latest.version, latest.count_rows(), len(latest.version_refs())) == (OLD, 1, OLD)
    assert latest.checkout_version(OLD // 2).to_table().num_rows == 1
    assert [find(tables[OLD], key_of(version)) for version in (1, OLD // 2, OLD)] == [1, OLD // 2, OLD]


def test_a_new_key_is_looked_up_by_as_many_requests_at_any_age(
    s3: S3Double, tables: dict[int, ResolvedTable]
) -> None:
    young, old = (requests_of(s3, lambda one=one: find(one, "new")) for one in tables.values())

    assert young == old
    assert old.total() <= MOST


def test_a_rerun_finds_its_commit_by_as_many_requests_at_any_age(
    s3: S3Double, tables: dict[int, ResolvedTable]
) -> None:
    young, old = (
        requests_of(s3, lambda one=one, version=versions // 2: find(one, key_of(version)))
        for versions, one in tables.items()
    )

    # Besides, two segments of the lineage are read: the newest, and that with the version.
    assert old - young == Counter(get=2)
    assert old.total() <= MOST


def test_a_write_costs_as_many_requests_at_any_age(s3: S3Double, tables: dict[int, ResolvedTable]) -> None:
    young, old = (
        requests_of(s3, lambda one=one, next_version=versions + 1: commit(one, next_version))
        for versions, one in tables.items()
    )

    assert young == old
