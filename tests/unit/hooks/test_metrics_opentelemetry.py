"""Metrics as an OpenTelemetry collector on loopback receives them."""

import gzip
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from tests.support.airflow_versions import IS_LOWEST

PROGRAM = """
from airflow_provider_lancens.hooks import metrics
from airflow_provider_lancens.spark.observed import Committed
metrics.count_poll("lake", 0.25, tables=3, waits=5, failed=0)
metrics.observer("lake")(Committed("db$t", "append", 0.1))
"""
if IS_LOWEST:  # it sends at intervals only, not at the end
    PROGRAM += "from opentelemetry.metrics import get_meter_provider; get_meter_provider().force_flush()"


@contextmanager
def collector(received: list[Any]) -> Iterator[int]:
    """Run a collector that keeps what it receives, and yield its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            zipped = self.headers.get("Content-Encoding") == "gzip"
            received.append(ExportMetricsServiceRequest.FromString(gzip.decompress(body) if zipped else body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def test_a_collector_receives_values_with_their_tags() -> None:
    received: list[Any] = []
    with collector(received) as port:
        settings = {
            "AIRFLOW__METRICS__OTEL_ON": "True",
            "AIRFLOW__METRICS__OTEL_HOST": "127.0.0.1",
            "AIRFLOW__METRICS__OTEL_PORT": str(port),
            "NO_PROXY": "127.0.0.1",
        }
        subprocess.run(
            [sys.executable, "-c", PROGRAM], env={**os.environ, **settings}, check=True, capture_output=True
        )

    sent = {}
    for metric in (
        m for one in received for r in one.resource_metrics for s in r.scope_metrics for m in s.metrics
    ):
        for point in getattr(metric, metric.WhichOneof("data")).data_points:
            tags = {tag.key: tag.value.string_value for tag in point.attributes}
            # A duration is a histogram, or to Airflow 3.1.0 a gauge of another type.
            is_count = hasattr(point, "as_int") and point.WhichOneof("value") == "as_int"
            sent[metric.name.removeprefix("airflow.")] = tags, point.as_int if is_count else None
    of_commit = {"lance_conn_id": "lake", "table": "db.t", "operation": "append"}
    assert {name: one for name, one in sent.items() if name.startswith("lance.")} == {
        "lance.poll.succeeded": ({"lance_conn_id": "lake"}, 1),
        "lance.poll.duration": ({"lance_conn_id": "lake"}, None),
        "lance.poll.tables": ({"lance_conn_id": "lake"}, 3),
        "lance.poll.waits": ({"lance_conn_id": "lake"}, 5),
        "lance.commit.made": (of_commit, 1),
        "lance.commit.duration": (of_commit, None),
    }
