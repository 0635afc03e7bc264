"""The JVM of a session of our own: started without secrets in its command line, ended with all it started."""

from __future__ import annotations

import contextlib
import logging
import re
import subprocess
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark import SparkContext

_SECRET = re.compile(r"secret|password|token|credential|access[.-]?key", re.IGNORECASE)
"""Settings by whose names Spark itself knows a secret, and hides it in its pages and its event log."""

_PATIENCE = 10.0
"""Seconds that a JVM has for its farewell: executors are given back to their cluster."""


def start_context(settings: Mapping[str, str]) -> SparkContext:
    """Start a context, in a JVM of its own where this process has none yet.

    PySpark writes the whole configuration into the JVM's command line, which every user of the machine can
    read. What is secret by its name goes there over the JVM's own socket instead.

    Args:
        settings: Spark's configuration.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    if SparkContext._gateway is not None:
        return SparkContext(conf=conf)
    public = [(key, value) for key, value in settings.items() if not is_secret(key)]
    gateway = launch_gateway(SparkConf(loadDefaults=False).setAll(public))  # type: ignore[no-untyped-call]
    try:
        return SparkContext(conf=conf, gateway=gateway)
    except BaseException:
        end(gateway.proc)
        forget(SparkSession)
        raise


def hush() -> None:
    """Let py4j log no more than warnings, unless somebody chose its level.

    At INFO it tells of every connection that ends, also after the work, and of one that a killed JVM took
    along by a whole trace.
    """
    log = logging.getLogger("py4j")
    if log.level == logging.NOTSET:
        log.setLevel(logging.WARNING)


def is_secret(key: str) -> bool:
    """Whether a setting is secret, by its name."""
    return _SECRET.search(key) is not None


def process_of(context: SparkContext) -> subprocess.Popen[bytes] | None:
    """The process of a context's JVM; None where spark-submit started it, and we are its guest."""
    process: subprocess.Popen[bytes] | None = getattr(context._gateway, "proc", None)
    return process


def end(process: subprocess.Popen[bytes]) -> None:
    """End a JVM with its Python workers; from any thread, or from a signal's handler.

    It is asked by a signal and not over its socket, where the answer to a running job may still be due.
    """
    process.terminate()
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()  # its workers end with the pipes that it held
        process.wait()
    if process.stdin is not None:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()


def forget(kind: Any) -> None:
    """Let this process start another session of this class, once the JVM of its own is gone."""
    from pyspark import SparkContext

    kind._instantiatedSession = kind._activeSession = None
    SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None
