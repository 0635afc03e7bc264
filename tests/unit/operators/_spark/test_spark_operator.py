"""A Spark Connect server that doesn't answer when a task opens its session."""

import json
import socket
import subprocess
import sys

import pytest

pytest.importorskip("pyspark.sql.connect.client.retries", reason="its repetitions can't be set")

TWICE = """
import json, os, sys
from airflow_provider_lancens.hooks.airflow_errors import LanceRetryableError
from airflow_provider_lancens.operators._spark.spark_operator import CancellableSparkWork
from airflow_provider_lancens.spark import session

session._RETRIES = 2  # of the six that take a minute
told = []
for _ in range(2):  # the first one leaves no session
    try:
        with CancellableSparkWork().session("test", json.loads(sys.argv[1])):
            pass
    except Exception as error:
        told.append([isinstance(error, LanceRetryableError), str(error)])
print(json.dumps({"told": told, "is_remote": session.CONNECT_MODE in os.environ}))
"""
"""For a process of its own, since the session of other tests would be used."""


def test_a_server_that_is_dead_before_the_session_is_told_with_its_address_and_retried() -> None:
    with socket.socket() as bound:  # nobody listens at its port
        bound.bind(("127.0.0.1", 0))
        address = f"sc://127.0.0.1:{bound.getsockname()[1]}"
        conf = {"spark.remote": f"{address}/;token=hunter2", "spark.sql.shuffle.partitions": "2"}
        done = subprocess.run(
            [sys.executable, "-c", TWICE, json.dumps(conf)],
            capture_output=True,
            text=True,
            timeout=240,
            check=True,
        )

    answer = json.loads(done.stdout.splitlines()[-1])
    assert [is_retried for is_retried, _ in answer["told"]] == [True, True]
    for _, message in answer["told"]:
        assert f"server at {address} doesn't answer" in message
        assert "host and port of the connection" in message
        assert "hunter2" not in message
    assert not answer["is_remote"]
