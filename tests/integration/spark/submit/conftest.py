"""An ingestion in the deployment of a connection, in a separate process."""

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_lancens.embedded import MetastoreServer

TREE = Path(__file__).parents[4]


@pytest.fixture
def secret() -> str:
    """A secret in the connection of `ingest`."""
    return f"hush-{uuid.uuid4()}"


@pytest.fixture
def ingest(
    metastore: MetastoreServer, pinned_orders: dict[str, Any], tmp_path: Path, secret: str
) -> Callable[..., tuple[list[dict[str, Any]], str]]:
    """Run the task twice in the deployment of a connection, and return its results and log.

    The connections are read from a file: Spark's processes would inherit those in environment variables.
    """
    lake = {"root": str(tmp_path), "storage.aws_secret_access_key": secret}
    connections = {"lake": {"conn_type": "lance_hive2", "host": metastore.uri, "extra": lake}}
    file = tmp_path / "connections.json"
    kwargs = {"backwards": secret[::-1]}
    environment = {
        "PYTHONPATH": str(TREE),
        "AIRFLOW__SECRETS__BACKEND": "airflow.secrets.local_filesystem.LocalFilesystemBackend",
        "AIRFLOW__SECRETS__BACKEND_KWARGS": json.dumps({"connections_file_path": str(file)}),
    }

    def run(deployment: dict[str, Any], **more: Any) -> tuple[list[dict[str, Any]], str]:
        file.write_text(json.dumps({**connections, "deployment": deployment}))
        arguments = json.dumps({**pinned_orders, "op_kwargs": kwargs, "spark_conn_id": "deployment", **more})
        command = [sys.executable, "-m", "tests.integration.spark.submit.run_ingestion"]
        environ = {**os.environ, **environment}
        done = subprocess.run(
            command, input=arguments, capture_output=True, text=True, timeout=600, cwd=TREE, env=environ
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-5000:]
        [line] = [line for line in done.stdout.splitlines() if line.startswith("[{")]
        return json.loads(line), done.stdout + done.stderr

    return run
