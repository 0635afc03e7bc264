"""The JVM of an own session: started without secrets in its command line, ended with its child processes."""

from __future__ import annotations

import contextlib
import logging
import subprocess
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.spark.session.jvm_log import logged_output
from airflow_provider_lancens.spark.session.secret_settings import shows_secret

if TYPE_CHECKING:
    from pyspark import SparkConf, SparkContext

_END_TIMEOUT = 10.0
"""Graceful-shutdown timeout of a JVM, in seconds: it releases its executors to their cluster."""


def start_context(settings: Mapping[str, str]) -> SparkContext:
    """Start a context, in a new JVM if this process has none yet.

    PySpark writes the whole configuration into the JVM's command line, which every user of the machine can
    read. Settings that show a secret are sent over the JVM's socket instead.

    Args:
        settings: Spark's configuration.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    if SparkContext._gateway is not None:
        return SparkContext(conf=conf)
    public = [(key, value) for key, value in settings.items() if not shows_secret(key, value)]
    gateway = _launch(SparkConf(loadDefaults=False).setAll(public))
    try:
        return SparkContext(conf=conf, gateway=gateway)
    except BaseException:
        end(gateway.proc)
        forget(SparkSession)
        raise


def _launch(conf: SparkConf) -> Any:
    from pyspark.java_gateway import launch_gateway

    with logged_output() as output, warnings.catch_warnings():
        # Lance warns of any fork; this one executes Java at once.
        warnings.filterwarnings("ignore", "lance is not fork-safe")
        return launch_gateway(conf, popen_kwargs={"stderr": output})  # type: ignore[no-untyped-call]


def quiet_py4j() -> None:
    """Set py4j's log level to warnings, unless a level is already set.

    At INFO it logs every connection that ends, also after the work, and a full traceback for a connection
    that a killed JVM closed.
    """
    log = logging.getLogger("py4j")
    if log.level == logging.NOTSET:
        log.setLevel(logging.WARNING)


def process_of(context: SparkContext) -> subprocess.Popen[bytes] | None:
    """Return the process of a context's JVM; None if spark-submit started it, and runs this process."""
    process: subprocess.Popen[bytes] | None = getattr(context._gateway, "proc", None)
    return process


def end(process: subprocess.Popen[bytes]) -> None:
    """End a JVM with its Python workers; from any thread, or from a signal handler.

    It is sent a signal rather than a request over its socket, where a running job's answer may be pending.
    """
    process.terminate()
    try:
        process.wait(_END_TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()  # its workers end when its pipes close
        process.wait()
    if process.stdin is not None:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()


def forget(kind: Any) -> None:
    """Allow this process to start another session of this class, once its own JVM has ended."""
    from pyspark import SparkContext

    kind._instantiatedSession = kind._activeSession = None
    SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None
