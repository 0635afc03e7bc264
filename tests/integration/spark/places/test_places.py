"""The same tasks through Spark Connect; `test_secrets` has one on a standalone cluster."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_provider_lancens.embedded import MetastoreServer
from tests.integration.spark.places.conftest import TREE

pytestmark = pytest.mark.slow


@pytest.fixture
def tables(
    metastore: MetastoreServer, connect: Callable[..., str], arguments: dict[str, Any], tmp_path: Path
) -> dict[str, Any]:
    """The tables of `arguments`, in reach of the connection to the lake."""
    connect(host=metastore.uri, extra={"root": str(tmp_path)})
    return {name: arguments[name] for name in ("table", "inputs")}


@pytest.fixture
def on_connect(connect: Callable[..., str], server: str) -> str:
    """The id of a connection to a Spark Connect server."""
    host, port = server.rsplit(":", 1)
    return connect("server", "spark_connect", host=f"sc://{host}", port=int(port))


def run(task: str, **arguments: Any) -> list[dict[str, Any]]:
    """Two runs of the same task."""
    command = [sys.executable, "-m", "tests.integration.spark.places.place", task, json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, cwd=TREE)
    assert done.returncode == 0, done.stderr[-5000:]
    [line] = [line for line in done.stdout.splitlines() if line.startswith("[{")]
    answers: list[dict[str, Any]] = json.loads(line)
    return answers


def check(answers: list[dict[str, Any]]) -> None:
    told = [(answer["version"], answer["rows"], answer["committed"]) for answer in answers]
    assert told == [(1, 2, True), (1, 2, False)]


def test_an_ingestion_through_spark_connect(tables: dict[str, Any], on_connect: str) -> None:
    check(run("ingest", **tables, spark_conn_id=on_connect))


def test_files_through_spark_connect(tables: dict[str, Any], on_connect: str, tmp_path: Path) -> None:
    rows = pa.table({"price": pa.array([1, 2], pa.decimal128(10, 2))})
    pq.write_table(rows, tmp_path / "prices.parquet")
    files = {"format": "parquet", "paths": [str(tmp_path / "prices.parquet")]}

    check(run("ingest_files", table=tables["table"], files=files, spark_conn_id=on_connect))


def test_maintenance_through_spark_connect(tables: dict[str, Any], on_connect: str) -> None:
    where = {"table": tables["inputs"]["orders"]["table"], "spark_conn_id": on_connect}

    compacted = run("compact", **where)
    indexed = run("index", **where, column="price", index_type="BTREE")

    assert [answer["fragments_removed"] for answer in compacted] == [2, 0]
    assert [(answer["rows"], answer["created"]) for answer in indexed] == [(5, True), (5, False)]
