"""A table gets another name, or its folder another place; its versions and keys stay."""
# ruff: noqa: T201  (the page prints)

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest

from airflow_provider_lancens import LanceCatalog, WriteIdentity
from airflow_provider_lancens.hooks import LanceHook
from airflow_provider_lancens.spark import Table

ORDERS = pa.table({"id": [1, 2, 3]})
AGAIN = WriteIdentity("day", on_existing_key="skip", execution_id="another")


@pytest.fixture
def catalog(lake: str) -> LanceCatalog:
    """The catalog of a connection to a metastore."""
    return LanceHook(lake).catalog()


@pytest.fixture
def orders(catalog: LanceCatalog, database: str) -> Table:
    """A table with two versions and a tag."""
    catalog.create_namespace(database)
    table = catalog.declare_table(f"{database}.orders")
    table.append(ORDERS, key="day")
    table.append(ORDERS, key="next day")
    table.tag("audited", 1)
    return table


def is_whole(table: Table) -> bool:
    """Whether a table has the versions, the tag and the keys that it had."""
    found = (table.version, table.at("audited").count_rows(), table.append(ORDERS, key=AGAIN).outcome)
    return found == (2, 3, "skipped")


@pytest.mark.usefixtures("orders")
def test_a_table_is_renamed_in_hive(catalog: LanceCatalog, database: str) -> None:
    shop, lake = database, catalog
    # [START rename_a_table]
    lake.namespace.rename_table({"id": [shop, "orders"], "new_table_name": "purchases"})
    # [END rename_a_table]
    assert is_whole(lake.table(f"{shop}.purchases"))
    assert not lake.table_exists(f"{shop}.orders")


@pytest.mark.parametrize("authority", ["storage", "catalog"])
def test_a_table_is_registered_under_another_name(
    catalog: LanceCatalog, orders: Table, database: str, authority: Literal["storage", "catalog"]
) -> None:
    orders.set_version_authority(authority)
    shop, lake = database, catalog
    # [START register_under_another_name]
    location = lake.table(f"{shop}.orders").location
    lake.deregister_table(f"{shop}.orders")
    purchases = lake.register_table(f"{shop}.purchases", location, version_authority=authority)
    # [END register_under_another_name]
    assert purchases.properties["managed_by"] == ("impl" if authority == "catalog" else "storage")
    assert is_whole(purchases)
    assert lake.list_tables(shop) == [purchases.name]


@pytest.mark.parametrize("authority", ["storage", "catalog"])
def test_a_table_is_moved(
    catalog: LanceCatalog, orders: Table, tmp_path: Path, authority: Literal["storage", "catalog"]
) -> None:
    orders.set_version_authority(authority)
    name, lake, old_location = orders.name, catalog, orders.location
    new_location = str(tmp_path / "elsewhere" / "orders.lance")
    shutil.copytree(old_location, new_location)
    # [START move_a_table]
    moved = lake.register_table(name, new_location, if_exists="replace", version_authority=authority)
    print(moved.check().verdict, moved.version)
    # [END move_a_table]
    shutil.rmtree(old_location)
    assert moved.location == new_location
    assert is_whole(lake.table(name))
