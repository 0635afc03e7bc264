"""Operators with Spark Connect; `submit/test_secrets` runs one on a standalone cluster."""

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
from tests.servers.spark import connect_address, connect_daemon

pytestmark = pytest.mark.thorough

TREE = Path(__file__).parents[4]


@pytest.fixture
def tables(
    metastore: MetastoreServer, connect: Callable[..., str], pinned_orders: dict[str, Any], tmp_path: Path
) -> dict[str, Any]:
    """Tables of the connection to the lake."""
    connect(host=metastore.uri, extra={"root": str(tmp_path)})
    return pinned_orders


@pytest.fixture
def on_connect(connect: Callable[..., str], server: str) -> str:
    """The id of a connection to a Spark Connect server."""
    host, port = server.rsplit(":", 1)
    return connect("server", "spark_connect", host=f"sc://{host}", port=int(port))


def run(*tasks: tuple[str, dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Run each task twice, in one process."""
    command = [sys.executable, "-m", "tests.integration.spark.session.run_operator", json.dumps(tasks)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, cwd=TREE)
    assert done.returncode == 0, done.stderr[-5000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[{")]


def test_data_frames_and_files_are_ingested_through_spark_connect(
    tables: dict[str, Any], on_connect: str, tmp_path: Path
) -> None:
    rows = pa.table({"price": pa.array([1, 2, 3], pa.decimal128(10, 2))})
    pq.write_table(rows, tmp_path / "prices.parquet")
    files = {"format": "parquet", "paths": [str(tmp_path / "prices.parquet")]}

    answers = run(
        ("ingest", {**tables, "spark_conn_id": on_connect}),
        ("ingest_files", {"table": tables["table"], "files": files, "spark_conn_id": on_connect}),
    )

    results = [
        [(one["version"], one["inserted"], one["outcome"] == "done") for one in of_task]
        for of_task in answers
    ]
    assert results == [[(1, 2, True), (1, 2, False)], [(2, 3, True), (2, 3, False)]]


@pytest.mark.long
def test_maintenance_through_spark_connect(tables: dict[str, Any], on_connect: str) -> None:
    where = {"table": tables["inputs"]["orders"]["table"], "spark_conn_id": on_connect}

    compacted, indexed = run(
        ("compact", where), ("index", {**where, "column": "price", "index_type": "BTREE"})
    )

    assert [answer["fragments_removed"] for answer in compacted] == [2, 0]
    assert [(answer["rows"], answer["outcome"] == "done") for answer in indexed] == [(5, True), (5, False)]


@pytest.mark.long
def test_a_server_that_is_killed_is_told_after_few_repetitions_of_a_call(tmp_path: Path) -> None:
    """In a process of its own, which has no other session; prints what the task would raise."""
    script = (
        "import sys\n"
        "from airflow_provider_lancens.operators._spark.spark_operator import _server_errors\n"
        "from airflow_provider_lancens.hooks.airflow_errors import LanceRetryableError\n"
        "from airflow_provider_lancens.spark.session import _connect\n"
        "spark = _connect({'spark.remote': sys.argv[1]})\n"
        "assert spark.range(3).count() == 3\n"
        "print('counted', flush=True)\n"
        "sys.stdin.readline()\n"
        "try:\n"
        "    with _server_errors(spark):\n"
        "        spark.range(3).count()\n"
        "except LanceRetryableError as error:\n"
        "    print(error, flush=True)\n"
        "import os; os._exit(0)\n"
    )
    with connect_daemon(tmp_path) as server:
        command = [sys.executable, "-c", script, f"sc://{connect_address(server)}"]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, cwd=TREE, **pipes) as client:
            assert client.stdout is not None
            assert client.stdout.readline() == "counted\n"
            server.kill()
            told, _ = client.communicate("\n", timeout=400)

    assert "the Spark Connect server doesn't answer any more" in told
