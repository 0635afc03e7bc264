"""A catalog opens, declares, lists and drops tables, and connects when that is first needed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import (
    InvalidInputError,
    NamespaceNotFoundError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedOperationError,
)

from airflow_provider_lancens import LanceCatalog, WriteIdentity, connect

IMPORTED = """
import sys
import airflow_provider_lancens
from airflow_provider_lancens import LanceCatalog, Table, WriteIdentity, connect
connect("hive2", {"uri": "thrift://unreachable.invalid:9083"}).table("shop.orders")
heavy = {"lance", "pyarrow", "pyspark", "lance_namespace", "boto3", "pandas", "airflow", "thrift"}
print(sorted(heavy & set(sys.modules)))
"""


@pytest.fixture
def lake(tmp_path: Path) -> LanceCatalog:
    return connect("dir", {"root": str(tmp_path)})


def test_opening_a_table_loads_nothing_heavy_and_connects_to_nothing() -> None:
    import subprocess
    import sys

    ran = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("impl", "properties", "message"),
    [
        ("hive4", {}, r"impl: expected one of hive2, hive3, glue, dir, rest, or a dotted path, got 'hive4'"),
        (None, {}, "impl: expected one of"),
        ("dir", {"root": 7}, "properties: expected text, 'root' is of type int"),
    ],
)
def test_connecting_to_something_unknown_is_refused_at_once(
    impl: Any, properties: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        connect(impl, properties)


def test_an_implementation_that_does_not_exist_is_refused_when_it_is_needed() -> None:
    lake = connect("no.such.Namespace")

    with pytest.raises(InvalidInputError, match=r"connecting to 'no\.such\.Namespace'"):
        lake.table("t").count_rows()


@pytest.mark.parametrize("text", ["shop.orders", "shop$orders", "SHOP.Orders", "`shop`.orders"])
def test_an_identifier_is_printed_with_dollars_however_it_is_written(lake: LanceCatalog, text: str) -> None:
    table = lake.table(text)

    assert (table.id, table.name, table.is_pinned) == (("shop", "orders"), "shop$orders", False)
    assert repr(table) == "Table('shop$orders')"


@pytest.mark.parametrize("text", ["shop$eu.orders", "", "shop..orders", None, 7])
def test_an_invalid_identifier_is_refused_with_what_was_given(lake: LanceCatalog, text: Any) -> None:
    with pytest.raises(InvalidInputError, match="table="):
        lake.table(text)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ({"table": "shop$orders"}, "a mapping with 'table' and 'version'.* got a mapping with 'table'"),
        ({}, "got a mapping with nothing"),
        ({"table": "shop$orders", "version": None}, "its version is None"),
        ({"table": "shop$orders", "version": "newest"}, "version: expected a whole number"),
        ({"table": "shop$orders", "version": True}, "version: expected a whole number"),
        ({"table": "shop$", "version": 1}, "a level is empty"),
        ({"table": "t", "version": 1, "previous_version": "x"}, "previous_version: expected a whole number"),
    ],
)
def test_a_result_without_a_table_and_a_version_is_refused(
    lake: LanceCatalog, result: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        lake.table(result)


def test_a_database_and_its_tables_are_created_listed_and_dropped(lake: LanceCatalog) -> None:
    assert lake.create_namespace("shop").outcome == "done"
    assert lake.create_namespace("shop").outcome == "unchanged"
    table = lake.declare_table("shop.orders")

    assert (table.version, table.declaration and table.declaration.outcome) == (None, "done")
    again = lake.declare_table("shop.orders").declaration
    assert again is not None
    assert again.as_dict() == {
        "table": "shop$orders",
        "operation": "declare_table",
        "outcome": "unchanged",
        "location": table.location,
    }
    assert lake.table("shop.orders").declaration is None
    assert lake.list_databases() == ["shop"]
    assert lake.list_tables("shop") == ["shop$orders"]
    assert lake.table_exists("shop.orders")
    assert not lake.table_exists("shop.others")
    assert not lake.table_exists("nowhere.orders")
    assert lake.deregister_table("shop.orders").is_done
    assert lake.list_tables("shop") == []
    assert lake.drop_namespace("shop").as_dict() == {
        "namespace": "shop",
        "operation": "drop_namespace",
        "outcome": "done",
    }
    assert lake.list_databases() == []


def test_a_table_that_exists_is_left_as_it_is_unless_that_is_to_fail(lake: LanceCatalog) -> None:
    location = lake.declare_table("orders").location

    assert lake.declare_table("orders").location == location
    with pytest.raises(TableAlreadyExistsError):
        lake.declare_table("orders", if_exists="fail")
    with pytest.raises(InvalidInputError, match="if_exists: expected one of skip, fail, got 'replace'"):
        lake.declare_table("orders", if_exists="replace")  # type: ignore[arg-type]


def test_a_table_that_exists_elsewhere_is_refused(lake: LanceCatalog, tmp_path: Path) -> None:
    lake.declare_table("orders")

    with pytest.raises(InvalidInputError, match="not at location="):
        lake.declare_table("orders", location=str(tmp_path / "elsewhere"))


def test_data_that_exists_is_registered(lake: LanceCatalog, tmp_path: Path) -> None:
    lance.write_dataset(pa.table({"id": [1, 2]}), str(tmp_path / "mine.lance"))
    lake.create_namespace("shop")

    assert lake.register_table("shop.mine", str(tmp_path / "mine.lance")).count_rows() == 2


@pytest.mark.parametrize("remove", [LanceCatalog.drop_table, LanceCatalog.deregister_table])
def test_removing_a_table_that_does_not_exist_fails_unless_that_is_to_be_skipped(
    lake: LanceCatalog, remove: Callable[..., Any]
) -> None:
    with pytest.raises((TableNotFoundError, NamespaceNotFoundError)):
        remove(lake, "nowhere")
    assert remove(lake, "nowhere", if_missing="skip").outcome == "unchanged"
    with pytest.raises(InvalidInputError, match="if_missing: expected one of fail, skip, got 'ignore'"):
        remove(lake, "nowhere", if_missing="ignore")


def test_a_flag_that_is_neither_true_nor_false_is_refused(lake: LanceCatalog) -> None:
    text: Any = "false"
    lake.declare_table("orders")

    with pytest.raises(InvalidInputError, match=r"^dry_run: expected True or False, got 'false'"):
        lake.drop_table("orders", dry_run=text)
    with pytest.raises(InvalidInputError, match=r"^cascade: expected True or False, got 'false'"):
        lake.drop_namespace("shop", cascade=text)
    with pytest.raises(InvalidInputError, match=r"^dry_run: expected True or False, got 'false'"):
        lake.drop_namespace("shop", dry_run=text)
    assert lake.table_exists("orders")


def test_a_catalog_without_cascade_says_so(lake: LanceCatalog) -> None:
    lake.create_namespace("shop")

    with pytest.raises(
        UnsupportedOperationError,
        match=r"cascade=True.* is not supported by this catalog, impl=dir; instead: drop or deregister",
    ):
        lake.drop_namespace("shop", cascade=True)


def test_a_catalog_is_closed_by_its_block(lake: LanceCatalog) -> None:
    with lake as opened:
        assert opened is lake
        assert repr(lake) == "LanceCatalog(not connected)"
        assert opened.list_tables() == []
    assert opened.list_tables() == []


# [START test_a_function]
def forget_customer(lake: LanceCatalog, customer: int) -> int:
    """The function of a task, which gets its tables from a catalog."""
    return lake.table("orders").delete(f"customer = {customer}").deleted


def test_the_orders_of_a_customer_are_deleted(tmp_path: Path) -> None:
    lake = connect("dir", {"root": str(tmp_path)})
    orders = lake.declare_table("orders")
    orders.append(pa.table({"customer": [1, 1, 2]}))

    assert forget_customer(lake, 1) == 2
    assert orders.to_arrow().to_pylist() == [{"customer": 2}]


# [END test_a_function]


def test_a_table_is_brought_over_in_steps_that_can_be_repeated(tmp_path: Path) -> None:
    months = {month: pa.table({"month": [month] * 3, "n": [1, 2, 3]}) for month in ("2026-01", "2026-02")}
    lake = connect("dir", {"root": str(tmp_path)})

    def rows_of(month: str) -> pa.Table:
        return months[month]

    for _ in range(2):  # the second time as after a kill
        sales = lake.declare_table("sales")
        for month in months:
            key = WriteIdentity(f"sales {month}", on_existing_key="skip")
            sales.append(rows_of(month), key=key)
    assert sales.count_rows() == 6


def test_a_layout_in_a_catalog_that_keeps_none_is_refused_with_what_to_do(lake: LanceCatalog) -> None:
    with pytest.raises(InvalidInputError, match="declared, but without its layout, since the catalog keeps"):
        lake.declare_table("t", layout={"stable_row_ids": True})
    assert lake.declare_table("t").name == "t"
