"""Tables of Delta Lake and Iceberg, brought to Lance by the example, run by Airflow itself.

On PySpark 4.1, whichever is installed: no Delta Lake and no Iceberg are made for 4.3 so far. That PySpark and
the jars are downloaded first, so CI doesn't run it.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.spark.lance_catalog import connect
from tests.e2e.dag_run import TREE, DagRunner
from tests.servers.maven import jars_of
from tests.servers.releases import hms_2
from tests.support.installed_packages import pyspark_alone

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]

EXAMPLE = TREE / "example_dags" / "bring_delta_and_iceberg.py"
PYSPARK = "4.1.4"
SMALL = "-Dspark.databricks.delta.snapshotPartitions=1 -Dspark.sql.shuffle.partitions=1"
"""Settings for small tables, which Delta Lake otherwise reads in many tasks, given to each JVM."""
CREATED = (
    """CREATE TABLE delta.`{0}/customers` USING delta
        AS SELECT id, concat('name ', id) AS name, CAST(id / 4 AS DECIMAL(10, 2)) AS credit FROM range(40)""",
    "CREATE TABLE delta.`{0}/visits` USING delta AS SELECT id, DATE '2026-01-01' AS day FROM range(10)",
    "CREATE NAMESPACE iceberg.sales",
    """CREATE TABLE iceberg.sales.products USING iceberg PARTITIONED BY (kind)
        AS SELECT id, concat('kind ', id % 3) AS kind FROM range(30)""",
)
CHANGED = (
    "DELETE FROM delta.`{0}/customers` WHERE id < 10",
    "UPDATE delta.`{0}/customers` SET name = 'new name' WHERE id = 10",
    "INSERT INTO delta.`{0}/visits` SELECT id, DATE '2026-01-02' FROM range(10, 15)",
    "DELETE FROM iceberg.sales.products WHERE kind = 'kind 0'",
    "ALTER TABLE iceberg.sales.products ADD COLUMN price double",
    "INSERT INTO iceberg.sales.products VALUES (100, 'kind 4', 1.5)",
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MetastoreServer]:
    with MetastoreServer(hms_2(), tmp_path / "metastore") as started:
        yield started


@pytest.fixture
def jars() -> str:
    found = jars_of(TREE / "tests" / "servers" / "lake-formats-4.1.xml")
    return ",".join(str(jar) for jar in sorted(found.iterdir()))


@pytest.fixture
def environment(
    airflow_home: dict[str, str], server: MetastoreServer, jars: str, tmp_path: Path
) -> dict[str, str]:
    lake = {"conn_type": "lance_hive2", "host": server.uri, "extra": {"root": str(tmp_path / "lake")}}
    return {
        **airflow_home,
        "SPARK_SUBMIT_OPTS": f"{os.environ.get('SPARK_SUBMIT_OPTS', '')} {SMALL}",
        "PYTHONPATH": os.pathsep.join([str(pyspark_alone(PYSPARK)), *sys.path]),
        "AIRFLOW__CORE__DAGS_FOLDER": str(EXAMPLE.parent),
        "AIRFLOW__CORE__DEFAULT_TASK_RETRY_DELAY": "0",
        "AIRFLOW_CONN_LAKE": json.dumps(lake),
        "AIRFLOW_VAR_CHECKPOINTS": str(tmp_path / "checkpoints"),
        "AIRFLOW_VAR_DELTA_JARS": jars,
        "AIRFLOW_VAR_DELTA_TABLES": str(tmp_path / "delta"),
        "AIRFLOW_VAR_ICEBERG_JARS": jars,  # the tasks of this test share a JVM
        "AIRFLOW_VAR_METASTORE": server.uri,
    }


@pytest.fixture
def conf(server: MetastoreServer, jars: str, tmp_path: Path) -> dict[str, str]:
    """Spark's configuration of who writes the tables."""
    return {
        "spark.jars": jars,
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalog.iceberg": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.iceberg.type": "hive",
        "spark.sql.catalog.iceberg.uri": server.uri,
        "spark.sql.catalog.iceberg.warehouse": str(tmp_path / "iceberg"),
        # The embedded metastore has no tables of locks, which only writers need.
        "spark.hadoop.iceberg.engine.hive.lock-enabled": "false",
    }


def test_each_version_of_a_table_comes_to_lance_once(
    environment: dict[str, str], conf: dict[str, str], server: MetastoreServer, tmp_path: Path
) -> None:
    def execute(statements: tuple[str, ...]) -> None:
        given = [one.format(tmp_path / "delta") for one in statements]
        command = [sys.executable, "-m", "tests.e2e.spark_statements", json.dumps(conf), json.dumps(given)]
        done = subprocess.run(command, env=environment, cwd=TREE, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-4000:]

    runner = DagRunner(environment)

    def run() -> dict[str, tuple[str, int]]:
        started = runner.start(EXAMPLE, {}, {})
        tasks = started.result()
        assert {task["state"] for task in tasks.values()} == {"success"}, started.log
        found = {name: task["xcom"] for name, task in tasks.items() if name.startswith("bring_")}
        return {name: (result["outcome"], result["version"]) for name, result in found.items()}

    try:
        execute(CREATED)
        first = run()
        brought = {name: rows(server, name) for name in ("customers", "products", "visits")}
        again = run()
        execute(CHANGED)
        later = run()
    finally:
        runner.stop()

    assert first == dict.fromkeys(first, ("done", 1))
    assert brought["customers"] == [(n, f"name {n}", Decimal(n) / 4) for n in range(40)]
    assert brought["products"] == [(n, f"kind {n % 3}") for n in range(30)]
    assert brought["visits"] == [(n, date(2026, 1, 1)) for n in range(10)]
    assert {outcome for outcome, _ in again.values()} == {"skipped", "unchanged"}
    assert {version for _, version in again.values()} == {1}
    assert later == dict.fromkeys(later, ("done", 2))
    assert rows(server, "customers") == [(10, "new name", Decimal("2.5")), *brought["customers"][11:]]
    kept = [(number, kind, None) for number, kind in brought["products"] if kind != "kind 0"]
    assert rows(server, "products") == [*kept, (100, "kind 4", 1.5)]
    assert rows(server, "visits") == [*brought["visits"], *((n, date(2026, 1, 2)) for n in range(10, 15))]


def rows(server: MetastoreServer, name: str) -> list[tuple[Any, ...]]:
    with closing(connect("hive2", {"uri": server.uri, "root": "/nowhere"})) as lake:
        found = lake.table(f"shop.{name}").to_arrow().to_pylist()
        return sorted((tuple(row.values()) for row in found), key=lambda row: row[0])
