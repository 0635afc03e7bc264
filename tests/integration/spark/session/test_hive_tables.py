"""Hive tables of a connection's metastore, read by Spark in a process with Hive support."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.hooks.airflow_errors import airflow_errors
from airflow_provider_lancens.spark.hive_tables import CATALOG, URIS
from airflow_provider_lancens.spark.session import opened_session
from tests.pyspark_versions import has_hive_4_client
from tests.servers.maven import jars_of

Connect = Callable[..., str]

SECONDS = 280
FACTS = [
    {
        "id": 1,
        "amount": "1.50",
        "at": "2026-01-01 01:02:03+00:00",
        "day": "2026-01-02",
        "code": "ab  ",
        "name": "cd",
        "tags": ["a", None],
        "scores": [["k", 1]],
        "place": {"x": 0.5, "y": 1.5},
    },
    {
        "id": 2,
        **dict.fromkeys(("amount", "at", "day", "code", "name", "tags", "scores", "place")),
    },
]
EVENTS = [
    {"id": 1, "kind": "in", "day": "2026-01-01", "shop": "a b"},
    {"id": 2, "kind": "out", "day": "2026-01-02", "shop": "0042"},
    {"id": 3, "kind": "in", "day": None, "shop": "a=b"},
]
PLAIN = [{"id": 1, "name": "x"}]

pytestmark = pytest.mark.timeout(SECONDS + 20)


def bring(database: str, folder: Path, **conf: str) -> "subprocess.CompletedProcess[str]":
    """Run `bring_tables` with the connection `lake` of the environment."""
    script = Path(__file__).with_name("bring_tables.py")
    return subprocess.run(
        [sys.executable, script, "lake", database, str(folder), json.dumps(conf)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def rows(done: "subprocess.CompletedProcess[str]") -> dict[str, list[dict[str, Any]]]:
    assert done.returncode == 0, done.stderr[-4000:]
    brought: dict[str, list[dict[str, Any]]] = json.loads(
        next(line for line in done.stdout.splitlines() if line.startswith("{"))  # Hive's client prints, too
    )
    return brought


@pytest.mark.thorough
@pytest.mark.parametrize(("release", "conn_type"), [("metastore", "lance_hive2"), ("hms3", "lance_hive3")])
def test_hive_tables_come_with_their_partition_columns_and_types(
    request: pytest.FixtureRequest,
    connect: Connect,
    database: str,
    tmp_path: Path,
    release: str,
    conn_type: str,
) -> None:
    server: MetastoreServer = request.getfixturevalue(release)
    connect(conn_type=conn_type, host=server.uri, extra={"root": str(tmp_path / "lake")})

    brought = rows(bring(database, tmp_path))

    assert brought == {"facts": FACTS, "events": EVENTS, "plain": PLAIN}
    assert not (tmp_path / "metastore_db").exists()  # that of a Spark without a metastore


@pytest.mark.thorough
def test_a_metastore_of_hive_4_is_refused_with_what_to_set(
    hms4: MetastoreServer, connect: Connect, database: str, tmp_path: Path
) -> None:
    connect(conn_type="lance_hive3", host=hms4.uri, extra={"root": str(tmp_path / "lake")})

    done = bring(database, tmp_path)

    assert done.returncode
    assert f"the metastore {hms4.uri} is of Hive 4, which Spark's own client" in done.stderr
    assert "(code 0, UNSUPPORTED)" in done.stderr


@pytest.mark.thorough
@has_hive_4_client
def test_tables_of_hive_4_come_with_hives_own_client(
    hms4: MetastoreServer, connect: Connect, database: str, tmp_path: Path
) -> None:
    connect(conn_type="lance_hive3", host=hms4.uri, extra={"root": str(tmp_path / "lake")})
    jars = jars_of(Path(__file__).parents[3] / "servers" / "hive-4.0.1-client.xml")
    client = {
        "spark.sql.hive.metastore.version": "4.0.1",
        "spark.sql.hive.metastore.jars": "path",
        "spark.sql.hive.metastore.jars.path": f"file://{jars}/*.jar",
    }

    brought = rows(bring(database, tmp_path, **client))

    assert brought == {"facts": FACTS, "events": EVENTS, "plain": PLAIN}


@pytest.mark.thorough
def test_a_metastore_that_spark_cannot_reach_is_told(connect: Connect, tmp_path: Path) -> None:
    connect(conn_type="lance_hive2", host="thrift://127.0.0.1:9", extra={"root": str(tmp_path / "lake")})

    done = bring("sales", tmp_path, **{"spark.hadoop.hive.metastore.client.connect.retry.delay": "0"})

    assert done.returncode
    last = done.stderr.strip().splitlines()[-1]
    assert "Spark can't read the tables of the metastore thrift://127.0.0.1:9" in last
    assert "Connection refused" in last
    assert "(code 17" in last


def test_a_session_without_hive_support_is_refused_at_once(spark: SparkSession) -> None:
    conf = {CATALOG: "hive", URIS: "thrift://hms:9083"}

    with (
        pytest.raises(Exception, match="the Spark session that is used has no Hive support") as raised,
        airflow_errors("opening a Spark session"),
        opened_session("tests", conf),
    ):
        pytest.fail("opened")

    assert f"start it with {CATALOG}=hive and {URIS}=thrift://hms:9083" in str(raised.value)
    assert spark.range(1).count() == 1  # it goes on
