"""Hive tables of a metastore of its own, brought to Lance by the examples, run by Airflow itself."""

import json
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.spark.hive_tables import CATALOG, URIS
from airflow_provider_lancens.spark.lance_catalog import connect
from tests.e2e.dag_run import TREE, dag_runs
from tests.e2e.outcomes import outcomes_in
from tests.servers.releases import hms_2
from tests.support.hive_tables import HiveDatabase, hive_database

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(900)]

EXAMPLES = TREE / "example_dags"
TABLES, KILLED_AFTER = 12, 3


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MetastoreServer]:
    with MetastoreServer(hms_2(), tmp_path / "metastore") as started:
        yield started


@pytest.fixture
def sales(server: MetastoreServer, tmp_path: Path) -> Iterator[HiveDatabase]:
    """The database of the examples."""
    with hive_database(server.uri, "sales", tmp_path / "hive") as database:
        yield database


@pytest.fixture
def environment(airflow_home: dict[str, str], server: MetastoreServer, tmp_path: Path) -> dict[str, str]:
    lake = {"conn_type": "lance_hive2", "host": server.uri, "extra": {"root": str(tmp_path / "lake")}}
    return {
        **airflow_home,
        "AIRFLOW__CORE__DAGS_FOLDER": str(EXAMPLES),
        "AIRFLOW_CONN_LAKE": json.dumps(lake),
    }


def logical_date(day: str) -> str:
    """The parameters of a run."""
    return json.dumps({"logical_date": f"{day}T00:00:00+00:00"})


def session_with_hive(server: MetastoreServer) -> list[str]:
    """The arguments of `run_dag` that start a session for all tasks."""
    return ["--session", json.dumps({"spark.master": "local[2]", CATALOG: "hive", URIS: server.uri})]


def rows_of(server: MetastoreServer, *names: str) -> dict[str, list[dict[str, Any]]]:
    """The rows of Lance tables, sorted by `id`."""
    with closing(connect("hive2", {"uri": server.uri, "root": "/nowhere"})) as lake:
        return {
            name: sorted(lake.table(f"sales_lance.{name}").to_arrow().to_pylist(), key=lambda row: row["id"])
            for name in names
        }


def test_a_table_and_a_day_of_a_partitioned_table_come_to_lance(
    server: MetastoreServer, sales: HiveDatabase, environment: dict[str, str]
) -> None:
    orders = pa.table({"id": pa.array([1, 2], pa.int32()), "shop": ["a", None]})
    days = pa.array(["2026-01-01", "2026-01-02", None]).cast(pa.date32())
    sales.create("orders", orders)
    sales.create("events", pa.table({"id": pa.array([1, 2, 3], pa.int64()), "day": days}), "orc", ["day"])

    with dag_runs([str(EXAMPLES / "bring_hive_tables.py"), logical_date("2026-01-03")], environment) as run:
        tasks = run.result()

    assert {task["state"] for task in tasks.values()} == {"success"}, run.log
    brought = rows_of(server, "orders", "events")
    assert brought["orders"] == orders.to_pylist()
    assert brought["events"] == [{"id": 2, "day": days[1].as_py()}]


def test_months_of_a_partitioned_table_come_to_lance_and_a_corrected_one_again(
    server: MetastoreServer, sales: HiveDatabase, environment: dict[str, str]
) -> None:
    days = pa.array(["2025-11-30", "2025-12-01", "2025-12-31", "2026-01-01"]).cast(pa.date32())
    rows = pa.table({"id": pa.array([1, 2, 3, 4], pa.int64()), "day": days})
    sales.create("events", rows, "parquet", ["day"])

    runs = [
        argument
        for date in ("2025-12-01", "2025-11-01", "2025-12-01")
        for argument in (str(EXAMPLES / "bring_hive_months.py"), logical_date(date))
    ]

    with dag_runs([*session_with_hive(server), *runs], environment) as run:
        run.result()

    months = outcomes_in(run.log)
    assert [{task["state"] for task in month.values()} for month in months] == [{"success"}] * 3, run.log
    assert rows_of(server, "events")["events"] == rows.slice(0, 3).to_pylist()


def test_a_database_that_is_killed_in_the_middle_is_continued(
    server: MetastoreServer, sales: HiveDatabase, environment: dict[str, str]
) -> None:
    expected = {}
    for number in range(TABLES):
        ids = range(number + 1)
        rows = pa.table({"id": pa.array(ids, pa.int32()), "day": [f"day {i % 3}" for i in ids]})
        kind, keys = (("parquet", ()), ("orc", ("day",)))[number % 2]
        sales.create(f"t{number:02}", rows, kind, keys)
        expected[f"t{number:02}"] = rows.to_pylist()
    sales.create_entry("a_view", table_type="VIRTUAL_VIEW")
    sales.create_entry("changes", "text", **{"spark.sql.sources.provider": "delta"})
    command = [*session_with_hive(server), str(EXAMPLES / "bring_database.py"), "{}"]

    with dag_runs(command, environment) as first:
        for _ in range(KILLED_AFTER):
            first.wait_for(": committed version 1 with")
        first.signal(signal.SIGKILL)
    with dag_runs(command, environment) as second:
        tasks = second.result()

    assert {task["state"] for task in tasks.values()} == {"success"}, second.log
    brought = tasks["plan"]["xcom"]
    assert 0 < len(brought) <= TABLES - KILLED_AFTER
    for reason in (
        "a_view is a view",
        "changes is a Delta table, which Spark reads with the jars of that format",
        *(f"{name} exists already, as sales_lance.{name}" for name in expected.keys() - brought),
    ):
        assert f"skipped: sales.{reason}" in second.log
    assert rows_of(server, *expected) == expected
    with closing(connect("hive2", {"uri": server.uri, "root": "/nowhere"})) as lake:
        assert {lake.table(f"sales_lance.{name}").version for name in expected} == {1}
