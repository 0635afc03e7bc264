"""A dataset that stays open while other clients change it."""

import shutil
from collections.abc import Callable
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace import DescribeTableResponse, LanceNamespace

from airflow_provider_lancens.namespace.storage.allowed_locations import AllowedLocations
from airflow_provider_lancens.spark.commit.committer import CommitOutcome
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec, ResolvedTable, resolved_table
from tests.servers.s3_double import S3Double
from tests.servers.s3_requests import GET, LIST
from tests.support.prepared_tables import ROWS

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
