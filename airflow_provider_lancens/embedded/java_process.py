"""A Java process that Python controls through a gateway, and that never outlives its parent."""

import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.embedded.java import clean_environment

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway

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
            # Its standard output is no longer read from here: it must never fill up.
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

    def _connect(self) -> "JavaGateway":
        from py4j.java_gateway import GatewayParameters, JavaGateway

        port, token = self._read_line(), self._read_line()
        return JavaGateway(
            gateway_parameters=GatewayParameters(
                address="127.0.0.1",
                port=int(port),
                auth_token=token,
                # The gateway is gone before Python's garbage collector would call it.
                enable_memory_management=False,
            )
        )

    def _read_line(self) -> str:
        line = self._process.stdout.readline() if self._process.stdout else b""
        if not line:
            raise EOFError(f"Java exited with code {self._process.wait()}")
        return line.decode().strip()
