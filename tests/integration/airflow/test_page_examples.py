"""Lines that pages show of tasks without Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from airflow_provider_lancens.hooks import LanceHook
from tests.support.page_code import run_blocks

ORDERS = pa.table({"day": ["2026-10-31", "2026-11-01", "2026-11-01"], "amount": [5.0, 7.5, 2.0]})


@pytest.fixture
def production(connect: Callable[..., str], tmp_path: Path) -> None:
    """Connections to lakes in folders, `lake` and `lake_production`; the latter has a tagged version."""
    for conn_id in ("lake", "lake_production"):
        connect(conn_id, conn_type="lance", extra={"root": str(tmp_path / conn_id)})
        catalog = LanceHook.for_connection(conn_id).catalog()
        catalog.create_namespace("shop")
        catalog.declare_table("shop.orders")
    orders = LanceHook.for_connection("lake_production").table("shop.orders")
    orders.append(ORDERS)
    orders.tag("audited", 1)
    orders.delete("TRUE")


@pytest.mark.usefixtures("production")
def test_rows_of_production_are_written_to_a_table_of_development() -> None:
    # [START copy_some_rows]
    source = LanceHook("lake_production").table("shop.orders").at("audited")
    LanceHook("lake").table("shop.orders").overwrite(source.to_arrow(filter="day = '2026-11-01'"))
    # [END copy_some_rows]
    assert LanceHook.for_connection("lake").table("shop.orders").count_rows() == 2


def test_tables_have_the_prefix_of_their_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKE_PREFIX", "staging_")
    # [START prefix]
    import os

    prefix = os.environ.get("LAKE_PREFIX", "")  # "staging_" on the workers and DAG processors of staging

    def table(name: str) -> str:
        """Return the table of this environment: shop.orders, or staging_shop.orders."""
        return prefix + name

    # [END prefix]
    assert table("shop.orders") == "staging_shop.orders"


@pytest.mark.usefixtures("production")
def test_duckdb_reads_a_pinned_version() -> None:
    duckdb = pytest.importorskip("duckdb")
    # [START duckdb]
    orders = LanceHook("lake_production").table("shop.orders").at("audited").dataset()
    days = duckdb.sql("SELECT day, sum(amount) FROM orders WHERE day >= '2026-11-01' GROUP BY day")
    # [END duckdb]
    assert days.fetchall() == [("2026-11-01", 9.5)]
    assert orders.count_rows() == 3


def test_a_hook_is_used_in_a_task(connect: Callable[..., str], tmp_path: Path) -> None:
    connect(conn_type="lance", extra={"root": str(tmp_path)})
    assert run_blocks("connections")["status"].location is None  # type: ignore[attr-defined]


def test_an_asset_is_referred_to() -> None:
    assert run_blocks("assets")["ORDERS"].uri == "lance://lake/shop/orders"  # type: ignore[attr-defined]


def test_settings_of_executors_name_their_python() -> None:
    assert "spark.pyspark.python" in run_blocks("executors")["spark_conf"]  # type: ignore[operator]
