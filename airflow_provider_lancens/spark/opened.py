"""A Spark session that can be given up at any moment: its block fails, or its task is killed."""

from __future__ import annotations

import logging
import os
import subprocess
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.spark import jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)

_PATIENCE = 30.0
"""Seconds that Spark has to answer a cancellation."""
CONNECT_MODE = "SPARK_CONNECT_MODE_ENABLED"
"""The environment variable by which PySpark knows that its functions are meant for Spark Connect."""


@dataclass(frozen=True, slots=True)
class OpenedSession:
    """A session that was there already: its jobs of this block can be canceled, it is never stopped."""

    spark: SparkSession
    tag: str = field(default_factory=lambda: f"lancens-{uuid.uuid4().hex}")
    """What this thread's jobs are tagged with, so that no other's are canceled."""

    def begin(self) -> None:
        """Tag what this thread runs from now on."""
        if is_remote(self.spark):
            self.spark.addTag(self.tag)
        else:
            self.spark.sparkContext.addJobTag(self.tag)

    def close(self) -> None:
        """End the block where nobody interrupted it."""
        if is_remote(self.spark):
            self.spark.removeTag(self.tag)
        else:
            self.spark.sparkContext.removeJobTag(self.tag)

    def abort(self) -> None:
        """Stop what is running; from any thread, or from a signal's handler. May be called twice."""
        if is_remote(self.spark):
            _elsewhere(lambda: self.spark.interruptTag(self.tag))
        else:
            _elsewhere(lambda: self.spark.sparkContext.cancelJobsWithTag(self.tag))


@dataclass(frozen=True, slots=True)
class OwnSession(OpenedSession):
    """A session that was started for the block, with the JVM that this process started for it."""

    process: subprocess.Popen[bytes] | None = None
    """The JVM; None where it is someone else's."""

    def close(self) -> None:
        """Stop it. Its JVM ends with this process: PySpark's errors ask it for their words until then."""
        if self.process is None or self.process.poll() is None:
            self.spark.stop()

    def abort(self) -> None:
        """See `OpenedSession.abort`: nobody is asked, the JVM ends, and executors and workers with it."""
        if self.process is None:
            OpenedSession.abort(self)
            _elsewhere(self.spark.stop)
        else:
            jvm.end(self.process)
            jvm.forget(type(self.spark))


@dataclass(frozen=True, slots=True)
class RemoteSession(OpenedSession):
    """A session of a Spark Connect server that was started for the block."""

    def close(self) -> None:
        """Let the server forget it."""
        self.spark.stop()
        os.environ.pop(CONNECT_MODE, None)

    def abort(self) -> None:
        """See `OpenedSession.abort`: the server interrupts what the session runs, and forgets it."""
        _elsewhere(self.spark.interruptAll)
        _elsewhere(self.close)


def is_remote(spark: Any) -> bool:
    """Whether a session is one of Spark Connect: it has no JVM, no context and no RDDs."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def _elsewhere(call: Callable[[], object]) -> None:
    """Call Spark from another thread: this one's connection may still owe the answer to a running job."""

    def attempt() -> None:
        try:
            call()
        except Exception as error:  # noqa: BLE001 whatever it is, there is nobody left to be told but the log
            _log.warning("Spark did not take the cancellation: %s", type(error).__name__)

    thread = threading.Thread(target=attempt, name="lance-spark-cancel", daemon=True)
    thread.start()
    thread.join(_PATIENCE)
