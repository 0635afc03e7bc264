"""Starts and stops a metastore over a folder of its own."""

import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from airflow_provider_lancens.embedded.distribution import COMMON_SETTINGS, Distribution
from airflow_provider_lancens.embedded.errors import EmbeddedMetastoreError, MetastoreStartError
from airflow_provider_lancens.embedded.java import find_java
from airflow_provider_lancens.embedded.jvm import Jvm
from airflow_provider_lancens.embedded.lock import Holder, locked, record_holder
from airflow_provider_lancens.embedded.probe import ask, require_free_port
from airflow_provider_lancens.embedded.thrift_service import HOST, root_cause, serve

_ANSWER_TIMEOUT_SECONDS = 60
_LOG_TAIL_LINES = 30

# Startup matters more than peak speed: half the time with the quick compiler only.
_JVM_OPTIONS = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Djava.awt.headless=true",
    "-Djava.net.preferIPv4Stack=true",
    "-Dderby.stream.error.field=java.lang.System.err",
    # After so many seconds it asks whether two that wait do so for each other: not after 20.
    "-Dderby.locks.deadlockTimeout=1",
)


class MetastoreServer:
    """A Hive Metastore on loopback, over a folder that survives restarts.

    The folder holds ``metastore_db`` (Derby), ``warehouse``, ``metastore.log`` and
    ``metastore.lock``. The server ends with `stop`, with the block, or with this process.

    Args:
        distribution: The release to run.
        folder: Where its data lies; made where missing.
        port: The port on 127.0.0.1. 0 chooses a free one at the first start and stays with it.
        settings: Settings of the server that go before ours, such as another database's.
        heap: The most memory for Java's objects, as ``-Xmx`` takes it.
        start_timeout: How long a start may take, in seconds.

    Raises:
        EmbeddedMetastoreError: The folder's path can't hold a database.
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
            raise EmbeddedMetastoreError(f"The metastore of {self.folder} has no port yet: start it first.")
        return f"thrift://{HOST}:{self._port}"

    @property
    def warehouse(self) -> Path:
        """Where databases without a location of their own lie."""
        return self.folder / "warehouse"

    @property
    def log(self) -> Path:
        """The server's log."""
        return self.folder / "metastore.log"

    @property
    def running(self) -> bool:
        """Whether the server's process lives."""
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
            MetastoreStartError: It is running already, its port is taken, or it failed.
        """
        if self.running:
            raise MetastoreStartError(f"The metastore of {self.folder} is already serving {self.uri}.")
        self.stop()  # what is left of one that ended by itself
        java = find_java(self._distribution.java)
        self.warehouse.mkdir(parents=True, exist_ok=True)
        with locked(self.folder) as lock:
            require_free_port(self._port)
            log_start = self.log.stat().st_size if self.log.exists() else 0
            self._jvm = Jvm(self._command(java), self.folder, self.log, lock)
        self._bring_up(self._jvm, log_start)
        return self

    def wait(self) -> int:
        """Wait until the server's process ends, by whatever reason, and return its exit code."""
        return self._started().wait()

    def stop(self) -> None:
        """Stop it; nothing that it started is left. Does nothing where it isn't running."""
        if self._jvm:
            self._jvm.stop()

    def kill(self) -> None:
        """Kill it without a chance to tidy up, as a crash would; `start` brings it back."""
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
            raise EmbeddedMetastoreError(f"The metastore of {self.folder} hasn't been started.")
        return self._jvm

    def _command(self, java: Path) -> list[str | Path]:
        class_path = os.pathsep.join(self._distribution.class_path)
        return [java, f"-Xmx{self._heap}", *_JVM_OPTIONS, "-cp", class_path]

    def _bring_up(self, jvm: Jvm, log_start: int) -> None:
        try:
            record_holder(self.folder, Holder(jvm.pid, os.getpid()))
            with jvm.killed_after(self._start_timeout):
                self._port = self._serve(jvm)
                ask(self._port, _ANSWER_TIMEOUT_SECONDS)
            record_holder(self.folder, Holder(jvm.pid, os.getpid(), self.uri))
        except BaseException as error:  # also an interrupt: nothing may be left running
            jvm.kill()
            if not isinstance(error, Exception):
                raise
            raise self._start_error(error, log_start) from error

    def _serve(self, jvm: Jvm) -> int:
        from py4j.protocol import Py4JJavaError

        settings = {
            **COMMON_SETTINGS,
            "hive.metastore.warehouse.dir": f"file:{self.warehouse}",
            **self._distribution.settings,
            **self._settings,
        }
        with jvm.gateway() as view:
            try:
                return serve(view, self._distribution, settings, self._port)
            except Py4JJavaError as error:
                # Read while the gateway is open: the exception lies in the JVM.
                raise MetastoreStartError(root_cause(error)) from None

    def _start_error(self, error: Exception, log_start: int) -> MetastoreStartError:
        return MetastoreStartError(
            f"{self._distribution.name} did not start in {self.folder}: {error}\n"
            f"The end of {self.log}:\n{self.log_tail(log_start)}"
        )


def _usable(folder: Path) -> Path:
    if ":" in str(folder):
        raise EmbeddedMetastoreError(
            f"{folder} can't hold a metastore: Derby makes a database below a path with ':' but can't open "
            "it again. Choose a folder without it."
        )
    return folder
