"""No secret is shown in any Spark deployment."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.servers.spark import SMALL, connect_server


@pytest.fixture
def events(tmp_path: Path) -> Path:
    """The folder of Spark's event log."""
    folder = tmp_path / "events"
    folder.mkdir()
    return folder


def check(answers: list[dict[str, Any]], log: str, secret: str) -> None:
    results = [(answer["version"], answer["inserted"], answer["outcome"] == "done") for answer in answers]
    assert results == [(1, 2, True), (1, 2, False)]
    assert secret not in log


@pytest.mark.parametrize(
    "submitted",
    [
        pytest.param(False, id="in-the-task", marks=pytest.mark.thorough),
        pytest.param(True, id="by-spark-submit", marks=pytest.mark.long),
    ],
)
def test_an_ingestion_on_a_standalone_cluster_shows_no_secret(
    ingest: Callable[..., Any], secret: str, cluster: str, events: Path, submitted: bool
) -> None:
    host, port = cluster.rsplit(":", 1)
    deployment = {"conn_type": "spark", "host": host, "port": int(port), "extra": {"deploy-mode": "client"}}
    conf = {
        **SMALL,
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
    }
    if not submitted:  # spark-submit gets no secret, since it would be visible
        conf["spark.hadoop.fs.s3a.secret.key"] = secret
        conf["spark.hadoop.fs.azure.account.key.lake.dfs.core.windows.net"] = secret
        conf["spark.hadoop.fs.azure.sas.container.lake.blob.core.windows.net"] = secret

    check(*ingest(deployment, spark_conf=conf, submitted=submitted), secret)
    check_events(events, secret)


@pytest.mark.long
def test_an_ingestion_through_spark_connect_shows_no_secret(
    ingest: Callable[..., Any], secret: str, events: Path, tmp_path: Path
) -> None:
    log = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
    }
    with connect_server(tmp_path, **log) as address:
        host, port = address.rsplit(":", 1)
        deployment = {"conn_type": "spark_connect", "host": f"sc://{host}", "port": int(port)}

        check(*ingest(deployment), secret)
    check_events(events, secret)


def check_events(events: Path, secret: str) -> None:
    logs = [file.read_bytes() for file in events.rglob("*") if file.is_file()]
    assert any(b"SparkListenerApplicationStart" in log for log in logs)
    assert not any(secret.encode() in log for log in logs)
