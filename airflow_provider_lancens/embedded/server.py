"""Starts and stops a metastore over a folder of its own."""

import contextlib
import os
import shutil
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from airflow_provider_lancens.embedded.distribution import COMMON_SETTINGS, Distribution
from airflow_provider_lancens.embedded.exceptions import EmbeddedMetastoreError, MetastoreStartError
from airflow_provider_lancens.embedded.java import find_java
from airflow_provider_lancens.embedded.java_process import Jvm
from airflow_provider_lancens.embedded.lock import Holder, locked, record_holder
from airflow_provider_lancens.embedded.thrift_service import HOST, root_cause, serve

_ANSWER_TIMEOUT_SECONDS = 60
_LOG_TAIL_LINES = 30
_LEAST_FREE_BYTES = 4 * 1024 * 1024
_MAKE_ROOM = "Free up space there, make it writable, or choose another folder."

# Startup matters more than peak speed: half the time with the quick compiler only.
_JVM_OPTIONS = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Djava.awt.headless=true",
    "-Djava.net.preferIPv4Stack=true",
    "-Dderby.stream.error.field=java.lang.System.err",
    # Seconds of waiting after which it checks for a deadlock: not the default of 20.
    "-Dderby.locks.deadlockTimeout=1",
)


class MetastoreServer:
    """A Hive Metastore on loopback, over a folder that survives restarts.

    The folder holds ``metastore_db`` (Derby), ``warehouse``, ``metastore.log`` and
    ``metastore.lock``. The server ends with `stop`, with the block, or with this process.

    Args:
        distribution: The release to run.
        folder: The folder of its data; created if missing.
        port: The port on 127.0.0.1. 0 chooses a free one at the first start and keeps it.
        settings: Settings of the server that override the defaults here, such as another database's.
        heap: The maximum Java heap size, as for ``-Xmx``.
        start_timeout: Timeout of a start, in seconds.

    Raises:
        EmbeddedMetastoreError: The folder's path is invalid for a database.
    """

    def __init__(
        self,
        distribution: Distribution,
        folder: Path,
        port: int = 0,
        *,
        settings: Mapping[str, str] | None = None,
        heap: str = "256m",
        start_timeout: float = 180,
    ) -> None:
        self.folder = _usable(Path(folder).absolute())
        self._distribution = distribution
        self._port = port
        self._settings = dict(settings or {})
        self._heap = heap
        self._start_timeout = start_timeout
        self._jvm: Jvm | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.folder)!r}, port={self._port}, running={self.running})"

    @property
    def uri(self) -> str:
        """``thrift://127.0.0.1:PORT``, also while it is stopped.

        Raises:
            EmbeddedMetastoreError: No port is chosen before the first start.
        """
        if not self._port:
            raise EmbeddedMetastoreError(f"The metastore in {self.folder} has no port yet: start it first.")
        return f"thrift://{HOST}:{self._port}"

    @property
    def warehouse(self) -> Path:
        """The folder of databases that have no location of their own."""
        return self.folder / "warehouse"

    @property
    def log(self) -> Path:
        """The server's log."""
        return self.folder / "metastore.log"

    @property
    def running(self) -> bool:
        """Whether the server's process is running."""
        return self._jvm is not None and self._jvm.running

    @property
    def pid(self) -> int:
        """The server's process.

        Raises:
            EmbeddedMetastoreError: It hasn't been started.
        """
        return self._started().pid

    def start(self) -> Self:
        """Start it, and return when it has answered a call.

        Raises:
            JavaUnsuitableError: Java is missing or too old.
            FolderInUseError: Another server holds the folder.
            MetastoreStartError: It is running already, its port is taken, its folder is full or read-only, or
                it failed.
        """
        if self.running:
            raise MetastoreStartError(f"The metastore in {self.folder} is already serving {self.uri}.")
        self.stop()  # what is left of one that ended by itself
        java = find_java(self._distribution.java)
        with self._writing():
            self.warehouse.mkdir(parents=True, exist_ok=True)
            with locked(self.folder) as lock:
                require_free_port(self._port)
                log_start = self.log.stat().st_size if self.log.exists() else 0
                self._jvm = Jvm(self._command(java), self.folder, self.log, lock)
        self._bring_up(self._jvm, log_start)
        return self

    def wait(self) -> int:
        """Wait until the server's process ends for any reason, and return its exit code."""
        return self._started().wait()

    def stop(self) -> None:
        """Stop it; nothing that it started is left. Does nothing where it isn't running."""
        if self._jvm:
            self._jvm.stop()

    def kill(self) -> None:
        """Kill it without a clean shutdown, as a crash would; `start` starts it again."""
        self._started().kill()

    def log_tail(self, start: int = 0) -> str:
        """Return the last lines of the log.

        Args:
            start: The offset in bytes below which nothing is of interest.
        """
        with self.log.open("rb") as log:
            log.seek(start)
            lines = log.read().decode(errors="replace").splitlines()
        return "\n".join(lines[-_LOG_TAIL_LINES:])

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _started(self) -> Jvm:
        if self._jvm is None:
            raise EmbeddedMetastoreError(f"The metastore in {self.folder} has not been started.")
        return self._jvm

    def _command(self, java: Path) -> list[str | Path]:
        class_path = os.pathsep.join(self._distribution.class_path)
        return [java, f"-Xmx{self._heap}", *_JVM_OPTIONS, "-cp", class_path]

    def _bring_up(self, jvm: Jvm, log_start: int) -> None:
        try:
            record_holder(self.folder, Holder(jvm.pid, os.getpid()))
            with jvm.killed_after(self._start_timeout):
                self._port = self._serve(jvm)
                check_answers(self._port, _ANSWER_TIMEOUT_SECONDS)
            record_holder(self.folder, Holder(jvm.pid, os.getpid(), self.uri))
        except BaseException as error:  # also an interrupt: nothing may be left running
            jvm.kill()
            if not isinstance(error, Exception):
                raise
            raise self._start_error(error, log_start) from error

    def _serve(self, jvm: Jvm) -> int:
        settings = {
            **COMMON_SETTINGS,
            "hive.metastore.warehouse.dir": f"file:{self.warehouse}",
            **self._distribution.settings,
            **self._settings,
        }
        with jvm.gateway() as view:
            try:
                return serve(view, self._distribution, settings, self._port)
            except Exception as error:  # of any type: PySpark may have replaced that of Java
                # Read while the gateway is open: the exception is in the JVM.
                cause = root_cause(error)
                if cause is None:
                    raise
                raise MetastoreStartError(cause) from None

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise MetastoreStartError(
                f"The metastore cannot write to {self.folder}: {error.strerror or error}. {_MAKE_ROOM}"
            ) from error

    def _start_error(self, error: Exception, log_start: int) -> MetastoreStartError:
        # Derby says no more than that it can't make its files.
        full = shutil.disk_usage(self.folder).free < _LEAST_FREE_BYTES
        advice = f" (its file system is full). {_MAKE_ROOM}" if full else ""
        return MetastoreStartError(
            f"{self._distribution.name} did not start in {self.folder}: {error}{advice}\nThe last "
            f"lines of {self.log}:\n{self.log_tail(log_start)}"
        )


def _usable(folder: Path) -> Path:
    if ":" in str(folder):
        raise EmbeddedMetastoreError(
            f"{folder} cannot be used for a metastore: Derby creates a database below a path that "
            "contains ':', but cannot open it again. Choose a folder without ':'."
        )
    return folder


def require_free_port(port: int) -> None:
    """Check that a port on loopback is free.

    Args:
        port: The port; 0, any free one, always passes.

    Raises:
        MetastoreStartError: A process listens on it.
    """
    with socket.socket() as candidate:
        candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            candidate.bind((HOST, port))
        except OSError as error:
            raise MetastoreStartError(
                f"Port {port} on {HOST} cannot be opened ({error.strerror}): choose another port, "
                "or 0 for any free one."
            ) from error


def check_answers(port: int, timeout_seconds: float) -> None:
    """Check that the metastore answers a call: list its databases.

    Raises:
        thrift.Thrift.TException: It didn't answer in time, or not as a metastore.
    """
    from hmsclient.genthrift.hive_metastore import ThriftHiveMetastore
    from thrift.protocol.TBinaryProtocol import TBinaryProtocol
    from thrift.transport.TSocket import TSocket
    from thrift.transport.TTransport import TBufferedTransport

    connection: Any = TSocket(HOST, port)
    connection.setTimeout(timeout_seconds * 1000)
    transport = TBufferedTransport(connection)
    transport.open()
    try:
        ThriftHiveMetastore.Client(TBinaryProtocol(transport)).get_all_databases()
    finally:
        transport.close()
