"""Java for the embedded metastore: found before anything starts, in a process that ends with its parent."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.embedded.exceptions import JavaUnsuitableError

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway


# Environment variables that change a JVM's behavior, or point Hadoop, Hive and Spark to other settings. They
# are removed, so that the server starts in the same way on every machine.
_FOREIGN_SETTINGS = re.compile(
    r"(PYSPARK|SPARK|HADOOP|HIVE|HMS)_.*|CLASSPATH|JAVA_TOOL_OPTIONS|JDK_JAVA_OPTIONS|_JAVA_OPTIONS"
)
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_VERSION_TIMEOUT_SECONDS = 60


@dataclass(frozen=True, slots=True)
class JavaVersions:
    """A range of supported Java versions.

    Args:
        oldest: The oldest major version, such as 17.
        newest: The newest one; None if none is known to be too new.
    """

    oldest: int
    newest: int | None = None

    def __contains__(self, version: int) -> bool:
        return self.oldest <= version and (self.newest is None or version <= self.newest)

    def __str__(self) -> str:
        return f"Java {self.oldest} or newer" + (f", up to {self.newest}" if self.newest else "")


def find_java(wanted: JavaVersions) -> Path:
    """Return the ``java`` of JAVA_HOME or, where that isn't set, of PATH.

    Args:
        wanted: The supported versions.

    Raises:
        JavaUnsuitableError: There is none, it doesn't run, or its version isn't supported.
    """
    try:
        return _find(wanted)
    except JavaUnsuitableError as error:
        advice = f"Install {wanted} (a JRE is sufficient), or set JAVA_HOME to one."
        raise JavaUnsuitableError(f"{error}. {advice}") from error.__cause__


def clean_environment() -> dict[str, str]:
    """Return this process's environment without what would reconfigure the server."""
    return {name: value for name, value in os.environ.items() if not _FOREIGN_SETTINGS.fullmatch(name)}


def _find(wanted: JavaVersions) -> Path:
    java, origin = _locate()
    version = _major_version(java, origin)
    if version not in wanted:
        raise JavaUnsuitableError(f"{java} ({origin}) is Java {version}")
    return java


def _locate() -> tuple[Path, str]:
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home, "bin", "java")
        if not java.is_file():
            raise JavaUnsuitableError(f"JAVA_HOME is {home!r}, but {java} does not exist")
        return java, "from JAVA_HOME"
    in_path = shutil.which("java")
    if not in_path:
        raise JavaUnsuitableError("Java not found: JAVA_HOME is not set, and PATH contains no java")
    return Path(in_path), "from PATH"


def _major_version(java: Path, origin: str) -> int:
    try:
        answer = subprocess.run(  # noqa: S603 - the user's own Java, without a shell
            [java, "-version"],
            env=clean_environment(),
            capture_output=True,
            text=True,
            timeout=_VERSION_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JavaUnsuitableError(f"cannot run {java} ({origin}): {error}") from error
    version = _VERSION.search(answer.stderr)
    if not version:
        raise JavaUnsuitableError(
            f"{java} ({origin}) -version did not print a version, but: {answer.stderr.strip()!r}"
        )
    return int(version[1])


_STOP_TIMEOUT_SECONDS = 15


class Jvm:
    """A running Java process with a Py4J gateway in it.

    It watches its standard input, a pipe that only this process holds: when this process ends for any
    reason, the pipe breaks and the JVM exits. Signals of this process's terminal don't reach it.

    Args:
        command: Java and its options, class path included.
        folder: Its working folder.
        log: The file that its output is appended to.
        inherited: A file descriptor that it keeps open while it runs.
    """

    def __init__(self, command: Sequence[str | Path], folder: Path, log: Path, inherited: int) -> None:
        with log.open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603 - our own command, without a shell
                [*command, "py4j.GatewayServer", "--die-on-broken-pipe", "--enable-auth", "0"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                cwd=folder,
                env=clean_environment(),
                pass_fds=[inherited],
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it is running."""
        return self._process.poll() is None

    @contextmanager
    def gateway(self) -> Iterator[Any]:
        """Provide a view of the JVM; the gateway is closed permanently afterwards.

        Raises:
            EOFError: The JVM ended before it opened its gateway.
            py4j.protocol.Py4JError: A call in the block failed.
        """
        gateway = self._connect()
        try:
            # Nothing reads the JVM's standard output from here on, so it must not fill up.
            system = gateway.jvm.java.lang.System
            system.setOut(system.err)
            yield gateway.jvm
        finally:
            gateway.shutdown()

    @contextmanager
    def killed_after(self, seconds: float) -> Iterator[None]:
        """Kill the process if the block takes longer, which ends all waits for it.

        Raises:
            TimeoutError: The block took longer.
        """
        expired = threading.Event()

        def expire() -> None:
            expired.set()
            self._process.kill()

        timer = threading.Timer(seconds, expire)
        timer.daemon = True
        timer.start()
        try:
            yield
        except Exception as error:
            if expired.is_set():
                raise TimeoutError(f"it was not ready within {seconds:g} seconds") from error
            raise
        finally:
            timer.cancel()

    def wait(self) -> int:
        """Wait until it ends, and return its exit code."""
        return self._process.wait()

    def stop(self) -> None:
        """End it and wait for its end; by force if it takes more than 15 seconds."""
        self._process.terminate()
        try:
            self._process.wait(_STOP_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._close()

    def kill(self) -> None:
        """End it at once, as a crash would (SIGKILL), and wait for its end."""
        self._process.kill()
        self._close()

    def _close(self) -> None:
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                pipe.close()

    def _connect(self) -> JavaGateway:
        from py4j.java_gateway import GatewayParameters, JavaGateway

        port, token = self._read_line(), self._read_line()
        return JavaGateway(
            gateway_parameters=GatewayParameters(
                address="127.0.0.1",
                port=int(port),
                auth_token=token,
                # The gateway is closed before Python's garbage collector could call it.
                enable_memory_management=False,
            )
        )

    def _read_line(self) -> str:
        line = self._process.stdout.readline() if self._process.stdout else b""
        if not line:
            raise EOFError(f"Java exited with code {self._process.wait()}")
        return line.decode().strip()
