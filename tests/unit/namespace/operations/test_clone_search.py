"""Clones are searched in what may be listed and read; what isn't known is told, a failing store stops it."""

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import PermissionDeniedError, ServiceUnavailableError

from airflow_provider_lancens.identifiers import NamespaceId, TableId
from airflow_provider_lancens.namespace.batch_reads import BatchRead
from airflow_provider_lancens.namespace.config import StorageConfig
from airflow_provider_lancens.namespace.metastore_protocol import CatalogTable, Namespace
from airflow_provider_lancens.namespace.operations.clone_search import CloneSearch
from airflow_provider_lancens.namespace.operations.connection_stores import ConnectionStores
from airflow_provider_lancens.namespace.storage.allowed_locations import AllowedLocations
from airflow_provider_lancens.namespace.storage.clones import Clones
from tests.servers.s3_double import S3Double
from tests.servers.s3_link import SLOW_DOWN
from tests.unit.spark.commit.memory_lake import MemoryMetastore

SOURCE = TableId.parse("sales$orders")


class Catalog(MemoryMetastore):
    """A metastore with three databases, some of which may be denied."""

    def __init__(self) -> None:
        super().__init__()
        self.denied: set[str] = set()
        self.scanned: list[str] = []
        for name in ("archive", "sales", "web"):
            self.create_namespace(Namespace(NamespaceId.parse(name)))

    def list_namespaces(self, parent: NamespaceId) -> list[str]:
        if "databases" in self.denied:
            raise PermissionDeniedError("glue:GetDatabases")
        return super().list_namespaces(parent)

    def scan_tables(self, namespace: NamespaceId, *, lance_only: bool = False) -> Iterator[BatchRead]:
        self.scanned.append(str(namespace))
        if str(namespace) in self.denied:
            raise PermissionDeniedError("glue:GetTables")
        yield from super().scan_tables(namespace, lance_only=lance_only)

    def add(self, name: str, location: object) -> None:
        self.create_table(CatalogTable(TableId.parse(name), str(location), {"table_type": "lance"}))


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    """A source with a clone in each database."""
    catalog = Catalog()
    source = lance.write_dataset(pa.table({"id": [1]}), str(tmp_path / "orders.lance"))
    catalog.add(str(SOURCE), tmp_path / "orders.lance")
    for database in ("archive", "sales", "web"):
        source.shallow_clone(str(tmp_path / f"{database}.lance"), 1)
        catalog.add(f"{database}$copy", tmp_path / f"{database}.lance")
    return catalog


def search(
    catalog: Catalog, location: object, most: int = 100, allowed: str | None = None, **options: str
) -> Clones:
    root = str(location).rpartition("/")[0]
    config = StorageConfig(root, storage_options=options, allowed=AllowedLocations.parse(allowed, root))
    metastore: Any = catalog
    stores = ConnectionStores(metastore, config)
    return CloneSearch(metastore, config, stores, SOURCE, str(location), most).in_listing()


def names(clones: Clones) -> list[str]:
    return [clone.table for clone in clones.found]


def test_all_databases_are_searched_the_sources_first(catalog: Catalog, tmp_path: Path) -> None:
    found = search(catalog, tmp_path / "orders.lance")

    assert (names(found), found.unknown) == (["sales$copy", "archive$copy", "web$copy"], ())
    assert catalog.scanned == ["sales", "archive", "web"]


def test_a_database_that_is_denied_is_told_and_the_others_are_searched(
    catalog: Catalog, tmp_path: Path
) -> None:
    catalog.denied = {"archive"}

    found = search(catalog, tmp_path / "orders.lance")

    assert names(found) == ["sales$copy", "web$copy"]
    assert found.unknown == ("the tables of archive can't be listed: glue:GetTables",)


def test_if_databases_are_denied_that_of_the_source_is_searched(catalog: Catalog, tmp_path: Path) -> None:
    catalog.denied = {"databases"}

    found = search(catalog, tmp_path / "orders.lance")

    assert names(found) == ["sales$copy"]
    assert found.unknown == ("the databases can't be listed: glue:GetDatabases",)


def test_no_more_tables_are_listed_or_read_than_the_limit_needs(catalog: Catalog, tmp_path: Path) -> None:
    found = search(catalog, tmp_path / "orders.lance", most=1)

    assert names(found) == ["sales$copy"]
    assert found.unknown == ("the metastore has more than the 1 tables that are searched",)
    assert catalog.scanned == ["sales", "archive"]
    catalog.scanned.clear()
    assert search(catalog, tmp_path / "orders.lance", most=3).unknown == ()


def test_tables_without_data_or_not_allowed_are_passed_over(catalog: Catalog, tmp_path: Path) -> None:
    catalog.add("sales$empty", tmp_path / "empty.lance")
    catalog.add("sales$relative", "orders.lance")

    assert search(catalog, tmp_path / "orders.lance").unknown == ()


def test_a_table_that_cannot_be_read_is_told(catalog: Catalog, tmp_path: Path) -> None:
    dataset = lance.write_dataset(pa.table({"id": [1]}), str(tmp_path / "broken.lance"))
    [manifest] = (tmp_path / "broken.lance" / "_versions").glob("*.manifest")
    manifest.chmod(stat.S_IRUSR | stat.S_IWUSR)
    manifest.write_bytes(b"LANC")
    catalog.add("sales$broken", dataset.uri)

    found = search(catalog, tmp_path / "orders.lance")

    assert names(found) == ["sales$copy", "archive$copy", "web$copy"]
    assert found.unknown == ("sales$broken can't be read",)


@pytest.mark.parametrize("bucket", ["lake", "elsewhere"])
def test_only_a_failure_of_the_sources_own_storage_stops_the_search(bucket: str) -> None:
    with S3Double() as s3:
        options = {**s3.storage, "client_max_retries": "0", "client_retry_timeout": "1"}
        catalog, location = Catalog(), f"s3://{s3.bucket_name}/copy.lance"
        lance.write_dataset(pa.table({"id": [1]}), location, storage_options=options)
        catalog.add("web$copy", location)
        s3.fault = lambda request: SLOW_DOWN

        if bucket == s3.bucket_name:
            with pytest.raises(ServiceUnavailableError, match="SlowDown"):
                search(catalog, f"s3://{bucket}/orders.lance", **options)
        else:
            found = search(
                catalog, f"s3://{bucket}/orders.lance", allowed="s3://lake,s3://elsewhere", **options
            )
            assert found.unknown == ("web$copy can't be read",)
