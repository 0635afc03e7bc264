"""The same tasks wherever Spark runs: on a standalone cluster, through Spark Connect."""

import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from airflow_provider_lancens.embedded import EmbeddedMetastore
from airflow_provider_lancens.namespace import Hive2Namespace
from tests.integration.airflow.tables import Table
from tests.servers.spark import SMALL

pytestmark = pytest.mark.slow


@pytest.fixture
def tables(
    metastore: EmbeddedMetastore, connect: Callable[..., str], database: str, tmp_path: Path
) -> dict[str, Any]:
    """Orders, of which version 1 has two cheap ones and version 2 a third, and a table for those."""
    with closing(Hive2Namespace(uri=metastore.uri, root=str(tmp_path))) as namespace:
        orders, target = Table(namespace, database, "orders"), Table(namespace, database, "cheap")
        orders.declare()
        for prices in ([1, 2, 3, 4], [0]):
            rows = pa.table({"price": pa.array(prices, pa.decimal128(10, 2))})
            lance.write_dataset(rows, namespace_client=namespace, table_id=orders.id, mode="append")
        target.declare()
    connect(host=metastore.uri, extra={"root": str(tmp_path)})
    return {"table": str(target), "inputs": {"orders": {"table": str(orders), "version": 1}}}


def run(task: str, **arguments: Any) -> list[dict[str, Any]]:
    """Two runs of the same task."""
    command = [sys.executable, "-m", "tests.integration.spark.places.place", task, json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, cwd=Path(__file__).parents[4])
    assert done.returncode == 0, done.stderr[-5000:]
    [line] = [line for line in done.stdout.splitlines() if line.startswith("[{")]
    answers: list[dict[str, Any]] = json.loads(line)
    return answers


def check(answers: list[dict[str, Any]]) -> None:
    told = [(answer["version"], answer["rows"], answer["committed"]) for answer in answers]
    assert told == [(1, 2, True), (1, 2, False)]


def test_an_ingestion_on_a_standalone_cluster(
    tables: dict[str, Any], connect: Callable[..., str], cluster: str
) -> None:
    host, port = cluster.rsplit(":", 1)
    connect("cluster", "spark", host=host, port=int(port), extra={"deploy-mode": "client"})

    check(run("ingest", **tables, spark_conn_id="cluster", spark_conf=SMALL))


def test_an_ingestion_through_spark_connect(
    tables: dict[str, Any], connect: Callable[..., str], server: str
) -> None:
    host, port = server.rsplit(":", 1)
    connect("server", "spark_connect", host=f"sc://{host}", port=int(port))

    check(run("ingest", **tables, spark_conn_id="server"))


def test_maintenance_through_spark_connect(
    tables: dict[str, Any], connect: Callable[..., str], server: str
) -> None:
    host, port = server.rsplit(":", 1)
    connect("server", "spark_connect", host=f"sc://{host}", port=int(port))
    where = {"table": tables["inputs"]["orders"]["table"], "spark_conn_id": "server"}

    compacted = run("compact", **where)
    indexed = run("index", **where, column="price", index_type="BTREE")

    assert [answer["fragments_removed"] for answer in compacted] == [2, 0]
    assert [(answer["rows"], answer["created"]) for answer in indexed] == [(5, True), (5, False)]
