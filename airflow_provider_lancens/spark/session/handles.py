"""Handles to abort a Spark session at any time: when its block fails, or its task is killed."""

from __future__ import annotations

import logging
import os
import subprocess
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.spark.session import local_jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)

_CANCEL_TIMEOUT = 30.0
"""Timeout of a cancellation, in seconds."""
CONNECT_MODE = "SPARK_CONNECT_MODE_ENABLED"
"""The environment variable that switches PySpark's functions to Spark Connect."""


@dataclass(frozen=True, slots=True)
class OpenedSession:
    """A session that already existed: its jobs of this block can be canceled, but it is never stopped."""

    spark: SparkSession
    tag: str = field(default_factory=lambda: f"lancens-{uuid.uuid4().hex}")
    """The tag of this thread's jobs, so that only these are canceled."""
    aborted: threading.Event = field(default_factory=threading.Event, repr=False)
    """Whether its end was requested: a session that has ended refuses to be ended again."""

    def begin(self) -> None:
        """Tag the jobs that this thread runs from now on."""
        if is_remote(self.spark):
            self.spark.addTag(self.tag)
        else:
            self.spark.sparkContext.addJobTag(self.tag)

    def close(self) -> None:
        """End the block if it wasn't interrupted."""
        if is_remote(self.spark):
            self.spark.removeTag(self.tag)
        else:
            self.spark.sparkContext.removeJobTag(self.tag)

    def abort(self) -> None:
        """Stop running jobs; from any thread, or from a signal handler. May be called twice."""
        if is_remote(self.spark):
            from_another_thread(lambda: self.spark.interruptTag(self.tag))
        else:
            from_another_thread(lambda: self.spark.sparkContext.cancelJobsWithTag(self.tag))


@dataclass(frozen=True, slots=True)
class OwnSession(OpenedSession):
    """A session that was started for the block, with the JVM that this process started for it."""

    process: subprocess.Popen[bytes] | None = None
    """The JVM; None if this process didn't start it."""

    def close(self) -> None:
        """Stop it. Its JVM ends with this process: until then PySpark's errors get their messages from it."""
        if self.process is None or self.process.poll() is None:
            self.spark.stop()

    def abort(self) -> None:
        """See `OpenedSession.abort`: the JVM is ended, and executors and workers with it."""
        if self.process is None:
            if not self.aborted.is_set():
                self.aborted.set()
                OpenedSession.abort(self)
                from_another_thread(self.spark.stop)
        else:
            local_jvm.end(self.process)
            local_jvm.forget(type(self.spark))


@dataclass(frozen=True, slots=True)
class RemoteSession(OpenedSession):
    """A session of a Spark Connect server that was started for the block."""

    def close(self) -> None:
        """Release it on the server."""
        self.spark.stop()
        os.environ.pop(CONNECT_MODE, None)

    def abort(self) -> None:
        """See `OpenedSession.abort`: the server interrupts the session's jobs, and releases it."""
        if self.aborted.is_set():
            return
        self.aborted.set()
        from_another_thread(self.spark.interruptAll)
        from_another_thread(self.close)


_GONE = ("UNAVAILABLE", "NO_ACTIVE_SESSION", "INVALID_HANDLE.SESSION", "failed to connect to all addresses")
"""In the errors of a Spark Connect client whose server has ended, or has lost the session."""


def server_is_gone(error: BaseException) -> bool:
    """Return whether an error, or one that it was raised from, says that a Spark Connect server is gone."""
    one: BaseException | None = error
    while one is not None:
        if type(one).__module__.startswith(("pyspark.errors", "grpc")) and any(
            text in str(one) for text in _GONE
        ):
            return True
        one = one.__cause__ or one.__context__
    return False


def is_remote(spark: Any) -> bool:
    """Return whether a session is one of Spark Connect, which has no JVM, no context and no RDDs."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def from_another_thread(call: Callable[[], object]) -> None:
    """Call Spark from another thread: this thread's connection may be waiting for a running job's answer."""

    def attempt() -> None:
        try:
            call()
        except Exception as error:  # noqa: BLE001 of any type: it can only be logged
            _log.warning("The Spark jobs could not be canceled: %s", type(error).__name__)

    thread = threading.Thread(target=attempt, name="lance-spark-cancel", daemon=True)
    thread.start()
    thread.join(_CANCEL_TIMEOUT)
