"""A Spark session for a block: the existing one, or a new one that is stopped afterwards."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from airflow_provider_lancens.spark.session import local_jvm
from airflow_provider_lancens.spark.session.handles import (
    CONNECT_MODE,
    OpenedSession,
    OwnSession,
    RemoteSession,
    is_remote,
)
from airflow_provider_lancens.spark.session.secret_settings import with_redaction
from airflow_provider_lancens.spark.session.sigalrm import before_sigalrm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER, REMOTE = "spark.master", "spark.remote"
PYTHON = "spark.pyspark.python"

_TIME_ZONE = {"spark.sql.session.timeZone": "UTC"}
_DEFAULTS = {
    MASTER: "local[*]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    **_TIME_ZONE,
}
_LOCAL_DEFAULTS = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
_ONE_PROCESS = re.compile(r"local(?:\[[^\]]*\])?")
"""Masters with executors in the driver's process, for which Spark itself chooses a random secret."""
_AUTHENTICATE = {"spark.authenticate": "true"}


@contextlib.contextmanager
def spark_session(app_name: str, conf: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """Return the session of this process, or a new one for the duration of the block.

    Args:
        app_name: what a new session calls itself.
        conf: see `opened_session`.

    Raises:
        RuntimeError: there is no Java to start Spark with.
    """
    with opened_session(app_name, conf) as opened:
        yield opened.spark


@contextlib.contextmanager
def opened_session(app_name: str, conf: Mapping[str, str] | None = None) -> Iterator[OpenedSession]:
    """Return the session's handle, by which it can be aborted while it runs.

    If a signal handler interrupts the block, Spark's jobs are stopped first.

    Args:
        app_name: what a new session calls itself.
        conf: Spark's configuration for a new session, over these defaults: ``local[*]``, no web UI, time
            zone UTC, and on a local master the loopback address, with authentication.
            ``spark.redaction.regex`` is extended. ``spark.remote`` asks for Spark Connect at that address.
            An existing session is used unchanged, and never stopped.

    Raises:
        RuntimeError: there is no Java to start Spark with, or the existing session runs elsewhere than
            `conf` configures.
    """
    # Said of each function that gets rows as Arrow, too. The doctor says it once.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    opened = _open(app_name, dict(conf or {}))
    try:
        opened.begin()
        with before_sigalrm(opened.abort):
            yield opened
    except Exception:
        with contextlib.suppress(
            Exception
        ):  # what failed may be Spark itself, and it's that error that counts
            opened.close()
        raise
    except BaseException:
        opened.abort()
        raise
    opened.close()


def _open(app_name: str, conf: dict[str, str]) -> OpenedSession:
    present = _present_session()
    if present is not None:
        _check_place(present, conf)
        return OpenedSession(present)
    if REMOTE in conf:
        return RemoteSession(_connect(conf))
    return _start(app_name, conf)


def _present_session() -> SparkSession | None:
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    try:
        return SparkSession.active()
    except PySparkRuntimeError:
        return None


def _check_place(present: SparkSession, conf: Mapping[str, str]) -> None:
    here = "Spark Connect" if is_remote(present) else present.sparkContext.master
    wanted = "Spark Connect" if REMOTE in conf else conf.get(MASTER, here)
    if wanted != here:
        raise RuntimeError(
            f"this process already has a Spark session on {here}, but the work is configured to run "
            f"on {wanted}; stop that session first, or remove that configuration"
        )


def _connect(conf: dict[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.remote(conf[REMOTE])
    for key, value in {**_TIME_ZONE, **conf}.items():
        if key not in (REMOTE, MASTER):
            builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except BaseException:
        os.environ.pop(CONNECT_MODE, None)
        raise


def _start(app_name: str, conf: dict[str, str]) -> OwnSession:
    from pyspark.sql import SparkSession

    # If spark-submit started this process, it has already set where to run.
    defaults = _TIME_ZONE if "PYSPARK_GATEWAY_PORT" in os.environ else _DEFAULTS
    settings = {**defaults, "spark.app.name": app_name, **conf}
    if settings.get(MASTER, "").startswith("local"):
        settings = {**_LOCAL_DEFAULTS, **settings}
        if _ONE_PROCESS.fullmatch(settings[MASTER]):
            # Without it, everybody on the machine can send serialized Java objects to the driver's port.
            settings = {**_AUTHENTICATE, **settings}
        # Spark starts workers with whatever `python3` is first in the path, which need not have Lance.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if PYTHON in settings:
        os.environ["PYSPARK_PYTHON"] = settings[PYTHON]
    _check_java()
    context = local_jvm.start_context(with_redaction(settings))
    return OwnSession(SparkSession.builder.getOrCreate(), process=local_jvm.process_of(context))


def _check_java() -> None:
    if not os.environ.get("JAVA_HOME") and shutil.which("java") is None:
        raise RuntimeError("Spark requires Java 17 or newer: set JAVA_HOME, or add java to PATH")
