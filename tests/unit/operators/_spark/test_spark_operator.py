"""A Spark Connect server that doesn't answer when a task opens its session."""

import os
import socket

import pytest

from airflow_provider_lancens.hooks.airflow_errors import LanceRetryableError
from airflow_provider_lancens.operators._spark.spark_operator import CancellableSparkWork
from airflow_provider_lancens.spark import session

pytest.importorskip("pyspark.sql.connect.client.retries", reason="its repetitions can't be set")


def test_a_server_that_is_dead_before_the_session_is_told_with_its_address_and_retried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session, "_RETRIES", 2)  # of the six that take a minute
    with socket.socket() as bound:  # nobody listens at its port
        bound.bind(("127.0.0.1", 0))
        address = f"sc://127.0.0.1:{bound.getsockname()[1]}"
        conf = {"spark.remote": f"{address}/;token=hunter2", "spark.sql.shuffle.partitions": "2"}
        for _ in range(2):  # the first one leaves no session
            with (
                pytest.raises(LanceRetryableError, match=f"server at {address} doesn't answer") as told,
                CancellableSparkWork().session("test", conf),
            ):
                pass

    assert "host and port of the connection" in str(told.value)
    assert "hunter2" not in str(told.value)
    assert session.CONNECT_MODE not in os.environ
