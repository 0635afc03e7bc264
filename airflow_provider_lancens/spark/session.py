"""A Spark session for one piece of work: the one that is there, or one of our own that we stop."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DEFAULTS = {
    "spark.master": "local[*]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
}
_LOCAL_DEFAULTS = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}


@contextlib.contextmanager
def spark_session(app_name: str, conf: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """The session of this process, or a new one for the duration of the block.

    Args:
        app_name: what a new session calls itself.
        conf: Spark's configuration for a new session, over these defaults: ``local[*]``, no web UI,
            time zone UTC, and on a local master the loopback address. A session that is there
            already is used as it is, and never stopped.

    Raises:
        RuntimeError: there is no Java to start Spark with.
    """
    present = _present_session()
    if present is not None:
        yield present
        return
    session = _start(app_name, dict(conf or {}))
    try:
        yield session
    finally:
        session.stop()


def _present_session() -> SparkSession | None:
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    try:
        return SparkSession.active()
    except PySparkRuntimeError:
        return None


def _start(app_name: str, conf: dict[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    settings = {**_DEFAULTS, **conf}
    if settings["spark.master"].startswith("local"):
        settings = {**_LOCAL_DEFAULTS, **settings}
        # Spark starts workers with whatever `python3` is first in the path, which need not have Lance.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    _check_java()
    builder = SparkSession.builder.appName(app_name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _check_java() -> None:
    if not os.environ.get("JAVA_HOME") and shutil.which("java") is None:
        raise RuntimeError("Spark needs Java 17 or newer: set JAVA_HOME, or put java into the PATH")
