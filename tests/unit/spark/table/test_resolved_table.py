"""A dataset that stays open while other clients change it."""

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace import DescribeTableResponse, LanceNamespace

from airflow_provider_lancens.namespace.managed.publication import CommitRecord
from airflow_provider_lancens.namespace.storage.allowed_locations import AllowedLocations
from airflow_provider_lancens.spark.commit.committer import CommitOutcome
from airflow_provider_lancens.spark.table.dataset_ref import small_manifest
from airflow_provider_lancens.spark.table.opened_version import open_version
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec, ResolvedTable, resolved_table
from tests.servers.s3_double import S3Double
from tests.servers.s3_requests import GET, HEAD, LIST
from tests.support.prepared_tables import ROWS
from tests.unit.spark.commit.memory_lake import NAME, PARTS, Lake

Write = Callable[..., CommitOutcome]


@pytest.fixture
def opened(target: ResolvedTable, write: Write) -> lance.LanceDataset:
    write("append", "january")
    dataset = target.open_latest()
    assert dataset is not None
    return dataset


def test_it_is_moved_to_the_version_of_another_writer(
    target: ResolvedTable, write: Write, opened: lance.LanceDataset
) -> None:
    write("append", "february")

    latest = target.open_latest(opened)

    assert latest is not None
    assert (latest.version, latest.count_rows()) == (2, 4)


def test_one_that_was_recreated_with_as_many_versions_is_read_anew(
    target: ResolvedTable, opened: lance.LanceDataset
) -> None:
    shutil.rmtree(target.dataset.location)
    lance.write_dataset(pa.table({"n": [7, 8, 9]}), target.dataset.location)

    latest = target.open_latest(opened)

    assert latest is not None
    assert latest.to_table()["n"].to_pylist() == [7, 8, 9]


def test_one_that_was_removed_is_none(target: ResolvedTable, opened: lance.LanceDataset) -> None:
    shutil.rmtree(target.dataset.location)

    assert target.open_latest(opened) is None


def test_an_unchanged_one_costs_one_listing() -> None:
    with S3Double() as s3:
        location = f"s3://{s3.bucket_name}/t.lance"
        dataset = lance.write_dataset(ROWS, location, storage_options=s3.storage)
        with s3.counted() as first:
            dataset = lance.dataset(location, storage_options=s3.storage)
        with s3.counted() as again:
            dataset.checkout_latest()
    assert (dict(first), dict(again)) == ({LIST: 1, GET: 1}, {LIST: 1})


class VendingNamespace(LanceNamespace):
    """Vends credentials of its own, as a namespace of this package does for a catalog that has some."""

    def __init__(self, **_: str) -> None:
        self.allowed_locations = AllowedLocations()

    def namespace_id(self) -> str:
        return "vending"

    def describe_table(self, _: Any) -> DescribeTableResponse:
        return DescribeTableResponse(
            location="/lake/t.lance", storage_options={"aws_access_key_id": "theirs"}
        )


def test_credentials_of_the_connection_are_not_added_to_vended_ones() -> None:
    own = {"storage.aws_access_key_id": "ours", "storage.aws_session_token": "of our key"}
    spec = NamespaceSpec(f"{__name__}.VendingNamespace", own)

    with resolved_table(spec, "t") as target:
        assert dict(target.dataset.storage_options) == {"aws_access_key_id": "theirs"}


@pytest.fixture
def managed() -> Iterator[Lake]:
    """A table at a given location, whose two versions the metastore decides."""
    with S3Double() as s3:
        lake = Lake(s3, "impl")
        declare_again(lake, first=1)
        yield lake


def declare_again(lake: Lake, first: int) -> None:
    """Declare the table at its location, and write two rows by two commits."""
    location, properties = "s3://lake/given", {"managed_by": "impl"}
    lake.namespace.declare_table({"id": PARTS, "location": location, "properties": properties})
    lake.write(first)
    lake.write(first + 1)


def test_a_managed_one_that_is_unchanged_costs_a_lookup_of_the_newest_version(managed: Lake) -> None:
    with resolved_table(managed.namespace, NAME) as target:
        opened = target.open_latest()
        calls = len(managed.metastore.calls)
        with managed.s3.counted() as requests:
            again = target.open_latest(opened)

    assert again is opened
    assert (dict(requests), managed.metastore.calls[calls:]) == ({HEAD: 2}, ["get_table"])


def test_a_managed_one_is_moved_to_the_version_of_another_writer(managed: Lake) -> None:
    with resolved_table(managed.namespace, NAME) as target:
        opened = target.open_latest()
        managed.write(3)
        latest = target.open_latest(opened)

    assert latest is not None
    assert sorted(latest.to_table()["row"].to_pylist()) == [1, 2, 3]


def test_a_managed_one_that_was_declared_again_with_as_many_versions_is_read_anew(managed: Lake) -> None:
    with resolved_table(managed.namespace, NAME) as target:
        opened = target.open_latest()
        managed.namespace.drop_table({"id": PARTS})
        declare_again(managed, first=8)
        latest = target.open_latest(opened)

    assert latest is not None
    assert (latest.version, sorted(latest.to_table()["row"].to_pylist())) == (2, [8, 9])


def test_a_version_that_was_looked_up_is_opened_without_a_further_lookup(managed: Lake) -> None:
    with resolved_table(managed.namespace, NAME) as target:
        calls = len(managed.metastore.calls)
        opened = open_version(target, 1)
        assert managed.metastore.calls[calls:] == ["get_table"]

        assert opened.to_table()["row"].to_pylist() == [1]
        assert opened.checkout_version(2).count_rows() == 2  # which the authority is asked for


def test_a_task_opens_the_version_that_it_was_sent_also_if_its_commit_was_interrupted(managed: Lake) -> None:
    [table] = managed.metastore.tables.values()
    commit = CommitRecord.of(table)
    assert commit is not None
    objects, root = managed.s3.bucket.objects, "given"
    with resolved_table(managed.namespace, NAME) as target:
        manifest = small_manifest(target.open(2))
        stored = objects[f"{root}/{commit.final_path}"]
        managed.s3.bucket.put(f"{root}/{commit.recorded_path}", stored)
        managed.s3.bucket.remove(f"{root}/{commit.final_path}")
        calls = len(managed.metastore.calls)

        opened = target.dataset.open(2, manifest)

        assert sorted(opened.to_table()["row"].to_pylist()) == [1, 2]
        assert managed.metastore.calls[calls:] == []
