"""Spark sessions: the existing one of this process, or a new one that ends with its block.

A session can be aborted at any time, since Airflow kills tasks by a signal. Its JVM gets no secret in the
command line, and what the JVM prints is logged at the level of each line.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.formatting import format_count, format_rate, format_size
from airflow_provider_lancens.redaction import NAMES_OF_SECRETS, is_secret, redact
from airflow_provider_lancens.spark.hive_tables import check_hive_tables, settings_of_server

if TYPE_CHECKING:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)


REDACTION = "spark.redaction.regex"
_ITS_DEFAULT = "(?i)secret|password|token|access[.]?key"
_SETTING = re.compile(rf"\s*{re.escape(REDACTION)}(?:\s*[=:]\s*|\s+)(\S.*?)\s*")
_JVM_OPTIONS = "JavaOptions"


def shows_secret(name: str, value: str) -> bool:
    """Return whether a setting shows a secret, by its name or by a URL in its value.

    Options of a JVM have to be in its command line: only their name counts.
    """
    return is_secret(name) or (not name.endswith(_JVM_OPTIONS) and redact(value) != value)


def with_redaction(settings: Mapping[str, str]) -> dict[str, str]:
    """Return settings by which Spark hides what is secret here, and what it or the user considers secret.

    Args:
        settings: Spark's configuration; an own ``spark.redaction.regex``, there or in spark-defaults.conf, is
            extended.
    """
    known = settings.get(REDACTION) or _default_of_machine() or _ITS_DEFAULT
    return {**settings, REDACTION: f"(?:{known})|(?i:{NAMES_OF_SECRETS})"}


def _default_of_machine() -> str | None:
    home = os.environ.get("SPARK_HOME")
    folder = os.environ.get("SPARK_CONF_DIR") or (home and str(Path(home, "conf")))
    if not folder:
        return None
    try:
        lines = Path(folder, "spark-defaults.conf").read_text(errors="replace").splitlines()
    except OSError:
        return None
    found = [setting[1] for line in lines if (setting := _SETTING.fullmatch(line))]
    return found[-1] if found else None


_LINES = (
    # Spark's default pattern, and its pattern for the console of structured logs.
    re.compile(r"\d\d/\d\d/\d\d \d\d:\d\d:\d\d (?P<level>[A-Z]+) (?P<text>.*)"),
    # Lance's, in a Python worker.
    re.compile(r"\[\d{4}-\d\d-\d\dT[\d:.]+Z (?P<level>[A-Z]+) +(?P<text>.*)"),
    re.compile(r"(?P<level>WARNING): (?P<text>.*)"),
)
_LEVELS = {
    "TRACE": logging.DEBUG,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "WARNING": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
_EXPECTED = (
    "Using Spark's default log4j profile",
    "Setting default log level to",
    "To adjust logging level use",
    "Using incubator modules",
    "Unable to load native-hadoop library",
    "resolves to a loopback address",
    "Set SPARK_LOCAL_IP if you need to bind",
    "it will be created",
    "is not fork-safe",
)
"""Parts of messages at each start or first write that call for no action: logged at level DEBUG."""


class Line(NamedTuple):
    """A line of the JVM's, and its level in Python's logging."""

    level: int
    text: str


@contextlib.contextmanager
def logged_output() -> Iterator[int]:
    """Yield a file descriptor for a child process to inherit; its output there is logged."""
    reading, writing = os.pipe()
    thread = threading.Thread(target=_follow, args=(reading,), name="lance-spark-log", daemon=True)
    thread.start()
    try:
        yield writing
    finally:
        os.close(writing)  # the child has its own


def parsed(lines: Iterable[str]) -> Iterator[Line]:
    """Yield lines with their levels; a line without one, as of a stack trace, has the previous level."""
    level = logging.INFO
    for line in lines:
        found = next(filter(None, (pattern.match(line) for pattern in _LINES)), None)
        if found:
            level = _LEVELS.get(found["level"], logging.INFO)
        text = found["text"] if found else line
        if text.strip():
            yield Line(logging.DEBUG if any(part in line for part in _EXPECTED) else level, text)


def _follow(descriptor: int) -> None:
    with open(descriptor, encoding="utf-8", errors="replace") as lines:
        for line in parsed(text.rstrip("\n") for text in lines):
            _log.log(line.level, "%s", line.text)


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
        end_jvm(gateway.proc)
        forget_active_session(SparkSession)
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


def end_jvm(process: subprocess.Popen[bytes]) -> None:
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


def forget_active_session(kind: Any) -> None:
    """Allow this process to start another session of this class, once its own JVM has ended."""
    from pyspark import SparkContext

    kind._instantiatedSession = kind._activeSession = None
    SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None


@contextmanager
def before_sigalrm(abort: Callable[[], None]) -> Iterator[None]:
    """Stop Spark's jobs before a SIGALRM handler raises.

    Otherwise PySpark, while it cleans up, sends the JVM another request over the socket where the running
    job's answer is pending, and waits for the end of that job. The error it raises then, once its JVM has
    ended, must not hide the one of the SIGALRM handler.

    Args:
        abort: stops the jobs.
    """
    previous_handler = signal.getsignal(signal.SIGALRM)
    if not callable(previous_handler) or threading.current_thread() is not threading.main_thread():
        yield  # no alarm is set, or another thread handles it
        return
    raised: BaseException | None = None

    def handler(number: int, frame: FrameType | None) -> None:
        nonlocal raised
        abort()
        try:
            previous_handler(number, frame)
        except BaseException as error:
            raised = error
            raise

    signal.signal(signal.SIGALRM, handler)
    try:
        yield
    except BaseException as error:
        if raised is not None and error is not raised:
            raise raised from error
        raise
    finally:
        signal.signal(signal.SIGALRM, previous_handler)


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
            end_jvm(self.process)
            forget_active_session(type(self.spark))


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
"""Texts in the errors of a Spark Connect client whose server has ended, or has lost the session."""


def server_is_gone(error: BaseException) -> bool:
    """Return whether an error, or an error that led to it, says that a Spark Connect server is gone."""
    cause: BaseException | None = error
    while cause is not None:
        if type(cause).__module__.startswith(("pyspark.errors", "grpc")) and any(
            text in str(cause) for text in _GONE
        ):
            return True
        cause = cause.__cause__ or cause.__context__
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


@dataclass(frozen=True, slots=True)
class Stage:
    """A running stage, and its reads so far, from files or from another stage."""

    number: int
    tasks: int
    done: int
    rows: int | None
    """None if Spark doesn't report them."""
    bytes: int

    def __str__(self) -> str:
        # Neither is known of what Spark doesn't read itself, such as our own sources.
        read = [format_count(self.rows, "row")] if self.rows else []
        read += [format_size(self.bytes)] if self.bytes else []
        more = f", {', '.join(read)} read" if read else ""
        return f"stage {self.number}: {self.done} of {format_count(self.tasks, 'task')}{more}"


class ProgressLog:
    """Logs stages if they have changed since the last time."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._started = self._last = time.monotonic()
        self._reported: Sequence[Stage] = ()

    def report(self, stages: Sequence[Stage]) -> None:
        """Log a line, unless nothing changed or the last one is too recent."""
        now = time.monotonic()
        if not stages or stages == self._reported or now - self._last < self._seconds:
            return
        self._reported, self._last = stages, now
        rows = sum(stage.rows or 0 for stage in stages)
        _log.info("%s%s", "; ".join(map(str, stages)), format_rate(rows, now - self._started))


@contextmanager
def progress_logged(spark: SparkSession, seconds: float = 10.0) -> Iterator[None]:
    """Log the session's stages for the duration of the block.

    Spark Connect reports tasks and bytes since 4.0, but no rows.

    Args:
        spark: the session.
        seconds: the minimum time between two lines.
    """
    log = ProgressLog(seconds)
    if not is_remote(spark):
        with _polling(partial(_running_stages, spark.sparkContext), log, seconds):
            yield
    elif hasattr(spark, "registerProgressHandler"):
        handler = partial(_on_progress, log)
        spark.registerProgressHandler(handler)  # type: ignore[arg-type]  # a plain function does
        yield
        spark.removeProgressHandler(handler)  # type: ignore[arg-type]
    else:
        yield


@contextmanager
def _polling(read_stages: Callable[[], list[Stage]], log: ProgressLog, seconds: float) -> Iterator[None]:
    over = threading.Event()

    def watch() -> None:
        while not over.wait(seconds):
            try:
                log.report(read_stages())
            except Exception as error:  # noqa: BLE001 a stage that is just over, a Spark that is: work goes on
                _log.debug("Progress is not available: %s", type(error).__name__)

    threading.Thread(target=watch, name="lance-spark-progress", daemon=True).start()
    try:
        yield
    finally:
        over.set()


def _running_stages(context: Any) -> list[Stage]:
    store = context._jsc.sc().statusStore()
    return [_stage(store.lastStageAttempt(number)) for number in context.statusTracker().getActiveStageIds()]


def _stage(data: Any) -> Stage:
    return Stage(
        data.stageId(),
        data.numTasks(),
        data.numCompleteTasks(),
        data.inputRecords() + data.shuffleReadRecords(),
        data.inputBytes() + data.shuffleReadBytes(),
    )


def _on_progress(log: ProgressLog, stages: Any, inflight_tasks: int, operation_id: Any, done: bool) -> None:  # noqa: ARG001 Spark's
    running = [stage for stage in stages or () if not stage.done]
    log.report(
        [Stage(s.stage_id, s.num_tasks, s.num_completed_tasks, None, s.num_bytes_read) for s in running]
    )


MASTER, REMOTE = "spark.master", "spark.remote"
PYTHON = "spark.pyspark.python"

_TIME_ZONE = {"spark.sql.session.timeZone": "UTC"}
_DEFAULTS = {
    MASTER: "local[2]",
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
        conf: Spark's configuration for a new session, over these defaults: ``local[2]``, no web UI, time
            zone UTC, and on a local master the loopback address, with authentication.
            ``spark.redaction.regex`` is extended. ``spark.remote`` asks for Spark Connect at that address.
            An existing session is used unchanged, and never stopped.

    Raises:
        RuntimeError: there is no Java to start Spark with, or the existing session runs elsewhere than
            `conf` configures.
        InvalidInputError: (13) `conf` asks for Hive tables, which the existing session or the Spark Connect
            server doesn't have; see `check_hive_tables` for further errors.
    """
    # Said of each function that gets rows as Arrow, too. The doctor says it once.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    opened = _open(app_name, dict(conf or {}))
    try:
        opened.begin()
        with before_sigalrm(opened.abort):
            check_hive_tables(opened.spark, conf or {})
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

    not_sent = {REMOTE, MASTER, *settings_of_server(conf)}
    settings: dict[str, Any] = {
        key: value for key, value in {**_TIME_ZONE, **conf}.items() if key not in not_sent
    }
    spark: Any = None
    try:
        # Without settings, since they make the first request, which is to be repeated as few times as others.
        spark = SparkSession.builder.remote(conf[REMOTE]).getOrCreate()
        _limit_retries(spark)
        return SparkSession.builder.remote(conf[REMOTE]).config(map=settings).getOrCreate()
    except BaseException as error:
        if spark is not None:
            _forget(spark)
        os.environ.pop(CONNECT_MODE, None)
        if isinstance(error, Exception) and server_is_gone(error):
            raise _unreachable(conf[REMOTE], error) from None
        raise


def _forget(spark: Any) -> None:
    """End a session that a server doesn't know, without repeated requests."""
    with contextlib.suppress(Exception):
        spark.client.set_retry_policies([])
        spark.stop()


def _unreachable(url: str, error: Exception) -> spec_errors.LanceNamespaceError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    # Parameters of the URL may have a token.
    address = redact(url.partition("/;")[0])
    return spec_errors.ServiceUnavailableError(
        f"the Spark Connect server at {address} doesn't answer: {redact(reason, [url])}; check that it runs, "
        "host and port of the connection, and whether workers of Airflow may reach them"
    )


_RETRIES = 6
"""Repetitions of a call to a Spark Connect server: with growing waits, a little more than a minute."""


def _limit_retries(spark: Any) -> None:
    """Let calls to a server that has ended fail soon: a restarted server doesn't know the session.

    By default each call is repeated for more than ten minutes, without a line in the log.
    """
    try:
        from pyspark.sql.connect.client.retries import DefaultPolicy
    except ImportError:  # older versions of PySpark have none that could be set
        return
    spark.client.set_retry_policies([DefaultPolicy(max_retries=_RETRIES)])


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
    context = start_context(with_redaction(settings))
    return OwnSession(SparkSession.builder.getOrCreate(), process=process_of(context))


def _check_java() -> None:
    if not os.environ.get("JAVA_HOME") and shutil.which("java") is None:
        raise RuntimeError("Spark requires Java 17 or newer: set JAVA_HOME, or add java to PATH")
