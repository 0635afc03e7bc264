"""Rows of files, of PostgreSQL, pandas, Polars and Arrow come to Lance by the example, run by Airflow."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import closing
from datetime import date
from pathlib import Path

import pytest

from airflow_provider_lancens.spark.lance_catalog import connect
from tests.e2e.dag_run import TREE, dag_runs
from tests.servers.maven import jars_of
from tests.servers.postgresql import USER, postgresql, program

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(900)]

EXAMPLES = TREE / "example_dags"
CUSTOMERS = """
CREATE TABLE customers (id bigint PRIMARY KEY, name text, credit numeric(10,2), since date, active boolean);
INSERT INTO customers SELECT i, 'name ' || i, i / 4.0, DATE '2026-01-01' + i, i % 2 = 0
  FROM generate_series(1, 40) i;
INSERT INTO customers (id) VALUES (900000);
"""


@pytest.fixture
def database() -> Iterator[int]:
    """The port of a PostgreSQL with the table of the example."""
    with postgresql() as port:
        address = ["-h", "127.0.0.1", "-p", str(port), "-U", USER, "-d", "postgres"]
        subprocess.run([program("psql"), *address, "-q", "-c", CUSTOMERS], check=True)
        yield port


def test_rows_of_each_source_come_to_lance(
    airflow_home: dict[str, str], database: int, tmp_path: Path
) -> None:
    driver = next(jars_of(TREE / "tests" / "servers" / "hms-3.1.3.xml").glob("postgresql-*.jar"))
    root = {"root": str(tmp_path / "lake")}
    shop = {
        "conn_type": "postgres",
        "host": "127.0.0.1",
        "port": database,
        "login": USER,
        "schema": "postgres",
    }
    environment = {
        **airflow_home,
        "TMPDIR": str(tmp_path),
        "AIRFLOW__CORE__DAGS_FOLDER": str(EXAMPLES),
        "AIRFLOW_CONN_LAKE": json.dumps({"conn_type": "lance", "extra": root}),
        "AIRFLOW_CONN_SHOP_DB": json.dumps(shop),
        "AIRFLOW_VAR_POSTGRESQL_JAR": str(driver),
    }
    conf = {"spark.master": "local[2]", "spark.jars": str(driver)}
    given = {"logical_date": "2026-01-02T00:00:00+00:00"}
    command = ["--session", json.dumps(conf), str(EXAMPLES / "bring_rows.py"), json.dumps(given)]

    with dag_runs(command, environment) as run:
        tasks = run.result()

    assert {task["state"] for task in tasks.values()} == {"success"}, run.log
    with closing(connect("dir", root)) as lake:

        def rows(name: str) -> list[tuple[object, ...]]:
            found = lake.table(f"shop.{name}").to_arrow().to_pylist()
            return sorted((tuple(row.values()) for row in found), key=lambda row: str(row[0]).zfill(9))

        day, leap = date(2026, 1, 2), date(2020, 2, 29)
        assert rows("sales") == [(1, 2.5, day), (2, None, day), (3, 1.0, leap)]
        assert rows("sales_of_day") == [(1, 2.5, day), (2, None, day)]
        assert rows("rates") == [("CHF", 1.13), ("EUR", 1.08)]
        assert rows("prices") == [(1, 250), (3, 100)]
        assert rows("codes") == [(3, 1)]
        customers = rows("customers")
        assert len(customers) == 41
        assert [str(value) for value in customers[0]] == ["1", "name 1", "0.25", "2026-01-02", "False"]
        assert customers[-1] == (900_000, None, None, None, None)
