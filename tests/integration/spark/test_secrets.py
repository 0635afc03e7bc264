"""Wherever Spark runs, and however its driver is started, a secret shows nowhere."""

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from airflow_provider_lancens.embedded import EmbeddedMetastore
from airflow_provider_lancens.namespace import Hive2Namespace
from tests.integration.airflow.tables import Table
from tests.servers.spark import SMALL, connect_server, standalone_cluster

pytestmark = pytest.mark.long

TREE = Path(__file__).parents[3]
SECRET = f"hush-{uuid.uuid4()}"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as url:
        yield url


@pytest.fixture
def events(tmp_path: Path) -> Path:
    """The folder of Spark's event log."""
    folder = tmp_path / "events"
    folder.mkdir()
    return folder


@pytest.fixture
def arguments(metastore: EmbeddedMetastore, database: str, tmp_path: Path) -> dict[str, Any]:
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
        "op_kwargs": {"backwards": SECRET[::-1]},
    }


@pytest.fixture
def ingest(
    metastore: EmbeddedMetastore, arguments: dict[str, Any], tmp_path: Path
) -> Callable[..., tuple[list[dict[str, Any]], str]]:
    """Run the task twice where a connection leads to: what it answers, and its log.

    The connections come out of a file: out of the environment, every process of Spark would inherit them.
    """
    lake = {"root": str(tmp_path), "storage.aws_secret_access_key": SECRET}
    connections = {"lake": {"conn_type": "lance_hive2", "host": metastore.uri, "extra": lake}}
    file = tmp_path / "connections.json"
    environment = {
        **os.environ,
        "PYTHONPATH": str(TREE),
        "AIRFLOW__SECRETS__BACKEND": "airflow.secrets.local_filesystem.LocalFilesystemBackend",
        "AIRFLOW__SECRETS__BACKEND_KWARGS": json.dumps({"connections_file_path": str(file)}),
    }

    def run(place: dict[str, Any], **more: Any) -> tuple[list[dict[str, Any]], str]:
        file.write_text(json.dumps({**connections, "place": place}))
        words = json.dumps({**arguments, "spark_conn_id": "place", **more})
        command = [sys.executable, "-m", "tests.integration.spark.secretive"]
        done = subprocess.run(
            command, input=words, capture_output=True, text=True, timeout=240, cwd=TREE, env=environment
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-5000:]
        [line] = [line for line in done.stdout.splitlines() if line.startswith("[{")]
        return json.loads(line), done.stdout + done.stderr

    return run


def check(answers: list[dict[str, Any]], log: str) -> None:
    told = [(answer["version"], answer["rows"], answer["committed"]) for answer in answers]
    assert told == [(1, 2, True), (1, 2, False)]
    assert SECRET not in log


@pytest.mark.parametrize(
    "submitted",
    [
        pytest.param(False, id="in-the-task"),
        pytest.param(True, id="by-spark-submit"),
    ],
)
def test_no_secret_shows_on_a_standalone_cluster(
    ingest: Callable[..., Any], cluster: str, events: Path, submitted: bool
) -> None:
    host, port = cluster.rsplit(":", 1)
    place = {"conn_type": "spark", "host": host, "port": int(port), "extra": {"deploy-mode": "client"}}
    conf = {
        **SMALL,
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
    }
    if not submitted:  # spark-submit is given none: it would show
        conf["spark.hadoop.fs.s3a.secret.key"] = SECRET

    check(*ingest(place, spark_conf=conf, submitted=submitted))
    check_events(events)


def test_no_secret_shows_through_spark_connect(
    ingest: Callable[..., Any], events: Path, tmp_path: Path
) -> None:
    log = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
    }
    with connect_server(tmp_path, **log) as address:
        host, port = address.rsplit(":", 1)
        place = {"conn_type": "spark_connect", "host": f"sc://{host}", "port": int(port)}

        check(*ingest(place))
    check_events(events)


def check_events(events: Path) -> None:
    logs = [file.read_bytes() for file in events.rglob("*") if file.is_file()]
    assert any(b"SparkListenerApplicationStart" in log for log in logs)
    assert not any(SECRET.encode() in log for log in logs)
