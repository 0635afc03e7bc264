"""Without `allowed_locations`, a connection with an object store uses its credentials in its own stores."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from lance_namespace.errors import PermissionDeniedError

from airflow_provider_lancens.identifiers import NamespaceId
from airflow_provider_lancens.namespace.config import StorageConfig
from airflow_provider_lancens.namespace.metastore_protocol import Metastore
from airflow_provider_lancens.namespace.operations.connection_stores import ConnectionStores
from airflow_provider_lancens.namespace.storage.allowed_locations import AllowedLocations

SALES = NamespaceId.parse("sales")


class Databases:
    """A metastore whose databases have one location, and which counts how often it is asked."""

    def __init__(self, location: str | None) -> None:
        self.location = location
        self.asked = 0

    def get_namespace(self, _: NamespaceId) -> Any:
        self.asked += 1
        if self.location == "denied":
            raise PermissionDeniedError("glue:GetDatabase")
        return SimpleNamespace(location=self.location)


def stores(
    root: str, database: str | None = None, allowed: str | None = None
) -> tuple[ConnectionStores, Databases]:
    databases = Databases(database)
    config = StorageConfig(root, allowed=AllowedLocations.parse(allowed, root))
    return ConnectionStores(cast("Metastore", databases), config), databases


@pytest.mark.parametrize(
    ("root", "location"),
    [("s3://lake/root", "s3a://lake/elsewhere/t.lance"), ("/root", "/elsewhere/t.lance")],
)
def test_a_table_in_the_store_of_the_root_costs_no_request(root: str, location: str) -> None:
    own, databases = stores(root, "hdfs://nn/sales.db")
    own.check(location, SALES, "table sales$t")
    assert databases.asked == 0


def test_the_store_of_a_database_is_asked_for_once() -> None:
    own, databases = stores("", "s3://other/sales.db")
    for number in range(100):
        own.check(f"s3://other/{number}.lance", SALES, "table sales$t")
    assert databases.asked == 1


@pytest.mark.parametrize(
    ("root", "database", "location"),
    [
        ("s3://lake/root", "s3://lake/sales.db", "/etc/t.lance"),
        ("s3://lake/root", "hdfs://nn/sales.db", "s3://payroll/t.lance"),
        ("s3://lake/root", "denied", "s3://payroll/t.lance"),
        ("", "s3://lake/sales.db", "file:///etc/t.lance"),
        ("/root", "s3://lake/sales.db", "gs://lake/t.lance"),
    ],
)
def test_a_table_in_another_store_is_refused_with_the_setting(
    root: str, database: str, location: str
) -> None:
    own, _ = stores(root, database)
    with pytest.raises(
        PermissionDeniedError, match=r"table sales\$t: .* another store .*'allowed_locations'"
    ):
        own.check(location, SALES, "table sales$t")
    stores(root, database, allowed="*")[0].check(location, SALES, "table sales$t")


@pytest.mark.parametrize(
    ("root", "database"), [("", "hdfs://nn/sales.db"), ("", None), ("", "denied"), ("/root", "/db")]
)
def test_without_an_object_store_to_go_by_nothing_is_refused(root: str, database: str | None) -> None:
    own, databases = stores(root, database)
    for _ in range(2):
        own.check("s3://anywhere/t.lance", SALES, "table sales$t")
    assert databases.asked == 1
