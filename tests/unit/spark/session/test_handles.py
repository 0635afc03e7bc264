"""How a session ends: once, and with the error that ended it."""

from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_lancens.hooks.airflow_errors import LanceRetryableError
from airflow_provider_lancens.operators._spark.spark_operator import killable
from airflow_provider_lancens.spark.session import RemoteSession, server_is_gone


class SparkConnectGrpcException(Exception):  # noqa: N818 as PySpark calls it
    """As a client of Spark Connect raises it."""


SparkConnectGrpcException.__module__ = "pyspark.errors.exceptions.connect"


def chained(cause: Exception, later: Exception) -> Exception:
    later.__context__ = cause
    return later


@pytest.mark.parametrize(
    ("error", "is_gone"),
    [
        (SparkConnectGrpcException("<_MultiThreadedRendezvous ... status = StatusCode.UNAVAILABLE"), True),
        (SparkConnectGrpcException("[NO_ACTIVE_SESSION] No active Spark session found."), True),
        (chained(SparkConnectGrpcException("StatusCode.UNAVAILABLE"), ValueError("x")), True),
        (SparkConnectGrpcException("[UNRESOLVED_COLUMN] a"), False),
        (ValueError("UNAVAILABLE"), False),
    ],
)
def test_a_server_that_is_gone_is_known_by_its_clients_error(error: Exception, is_gone: bool) -> None:
    assert server_is_gone(error) is is_gone


def test_a_session_of_a_server_is_ended_once(caplog: pytest.LogCaptureFixture) -> None:
    calls: list[str] = []
    spark: Any = SimpleNamespace(
        interruptAll=lambda: calls.append("interrupt"), stop=lambda: calls.append("stop")
    )
    session = RemoteSession(spark)

    session.abort()
    session.abort()

    assert calls == ["interrupt", "stop"]
    assert not caplog.messages


def test_a_killed_task_fails_without_the_tracebacks_of_what_it_was_doing() -> None:
    with pytest.raises(LanceRetryableError, match="the task was killed") as failed, killable() as work:
        work.kill()

    assert failed.value.__cause__ is None
    assert failed.value.__suppress_context__
