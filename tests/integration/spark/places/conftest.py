"""One task, run where a connection leads to, in a process of its own: a process has one Spark."""

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.namespace import Hive2Namespace
from tests.integration.airflow.tables import Table

TREE = Path(__file__).parents[4]


@pytest.fixture
def secret() -> str:
    """What the connection of `ingest` holds, and nobody is to see."""
    return f"hush-{uuid.uuid4()}"


@pytest.fixture
def arguments(metastore: MetastoreServer, database: str, tmp_path: Path, secret: str) -> dict[str, Any]:
    """Orders, of which version 1 has two cheap ones and version 2 a third, and a table for those."""
    with closing(Hive2Namespace(uri=metastore.uri, root=str(tmp_path))) as namespace:
        orders, target = Table(namespace, database, "orders"), Table(namespace, database, "cheap")
        orders.declare()
        for prices in ([1, 2, 3, 4], [0]):
            rows = pa.table({"price": pa.array(prices, pa.decimal128(10, 2))})
            lance.write_dataset(rows, namespace_client=namespace, table_id=orders.id, mode="append")
        target.declare()
    return {
        "table": str(target),
        "inputs": {"orders": {"table": str(orders), "version": 1}},
        "op_kwargs": {"backwards": secret[::-1]},
    }


@pytest.fixture
def ingest(
    metastore: MetastoreServer, arguments: dict[str, Any], tmp_path: Path, secret: str
) -> Callable[..., tuple[list[dict[str, Any]], str]]:
    """Run the task twice where a connection leads to: what it answers, and its log.

    The connections come out of a file: out of the environment, every process of Spark would inherit them.
    """
    lake = {"root": str(tmp_path), "storage.aws_secret_access_key": secret}
    connections = {"lake": {"conn_type": "lance_hive2", "host": metastore.uri, "extra": lake}}
    file = tmp_path / "connections.json"

    environment = {
        "PYTHONPATH": str(TREE),
        "AIRFLOW__SECRETS__BACKEND": "airflow.secrets.local_filesystem.LocalFilesystemBackend",
        "AIRFLOW__SECRETS__BACKEND_KWARGS": json.dumps({"connections_file_path": str(file)}),
    }

    def run(place: dict[str, Any], **more: Any) -> tuple[list[dict[str, Any]], str]:
        file.write_text(json.dumps({**connections, "place": place}))
        words = json.dumps({**arguments, "spark_conn_id": "place", **more})
        command = [sys.executable, "-m", "tests.integration.spark.places.secretive"]
        environ = {**os.environ, **environment}
        done = subprocess.run(
            command, input=words, capture_output=True, text=True, timeout=600, cwd=TREE, env=environ
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-5000:]
        [line] = [line for line in done.stdout.splitlines() if line.startswith("[{")]
        return json.loads(line), done.stdout + done.stderr

    return run
