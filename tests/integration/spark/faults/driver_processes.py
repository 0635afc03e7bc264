"""Driver processes controlled by tests."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from airflow_provider_lancens.spark import NamespaceSpec
from tests.integration.spark.faults.frozen_process import read_result, state_of, wait_for
from tests.integration.spark.faults.write_steps import BEFORE_THE_COMMIT

SECONDS = 240


class Driver:
    """A running `driver_main.py`. It stops at a gate when any of its processes reaches a step of a write.

    The gate is a named pipe: a process opens it for reading, and continues when the writing end is closed.
    """

    def __init__(self, process: "subprocess.Popen[str]", gate: Path) -> None:
        self.process = process
        self._gate = gate
        self._held: int | None = None

    def start_writing(
        self,
        spec: NamespaceSpec,
        table: str,
        ids: tuple[int, int],
        *,
        key: str,
        way: str = "append",
        step: str = BEFORE_THE_COMMIT,
        **how: Any,
    ) -> None:
        """Send a job, with arguments of `write_table`; it runs to a step, and waits there."""
        job = {"impl": spec.impl, "properties": dict(spec.properties), "table": table, "ids": ids}
        how["key"] = key
        job |= {"how": how, "way": way, "step": step, "gate": str(self._gate), "freezes": False}
        self._send(json.dumps(job))

    @contextmanager
    def frozen(
        self, spec: NamespaceSpec, table: str, ids: tuple[int, int], *, key: str, way: str, step: str
    ) -> Iterator[None]:
        """Suspend the process that executes a step, for the duration of the block."""
        note = self._gate.with_name(uuid.uuid4().hex)
        job = {"impl": spec.impl, "properties": dict(spec.properties), "table": table, "ids": ids}
        how = {"key": key}
        job |= {"how": how, "way": way, "step": step, "gate": str(note), "freezes": True}
        self._send(json.dumps(job))
        wait_for(lambda: note.exists() and note.read_text() and state_of(int(note.read_text())) == "T")
        try:
            yield
        finally:
            os.kill(int(note.read_text()), signal.SIGCONT)

    def arrive(self) -> None:
        """Return once it has reached the step."""
        deadline = time.monotonic() + SECONDS
        while self._held is None:
            assert self.process.poll() is None, "the driver ended before it came to the step"
            assert time.monotonic() < deadline, "the driver didn't come to the step"
            try:
                self._held = os.open(self._gate, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:  # no process has opened it for reading
                time.sleep(0.01)

    def go_on(self) -> None:
        """Let it continue."""
        assert self._held is not None
        os.close(self._held)
        self._held = None

    def answer(self) -> dict[str, Any]:
        """Return the next line of its output."""
        return read_result(self.process)

    def kill(self) -> None:
        """Kill it by SIGKILL, and check that no process waits at the gate."""
        self.process.kill()
        self.process.wait()
        deadline = time.monotonic() + SECONDS
        while self._is_someone_at_the_gate():
            assert time.monotonic() < deadline, "a process of the driver lives on"
            time.sleep(0.01)
        self.go_on()

    def _is_someone_at_the_gate(self) -> bool:
        assert self._held is not None
        try:
            os.write(self._held, b".")
        except BrokenPipeError:
            return False
        return True

    def _send(self, line: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()


@contextmanager
def running_driver(**conf: str) -> Iterator[Driver]:
    """Start a driver with a session of this configuration; it responds once it is ready."""
    command = [sys.executable, "-m", "tests.integration.spark.faults.driver_main", json.dumps(conf)]
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(
            command,
            cwd=Path(__file__).parents[4],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as process,
    ):
        gate = Path(folder, "gate")
        os.mkfifo(gate)
        try:
            yield Driver(process, gate)
        finally:
            # Its Spark ends with it, since the JVM watches the pipe from its driver.
            process.kill()


def race(
    drivers: tuple[Driver, Driver],
    spec: NamespaceSpec,
    table: str,
    *,
    keys: tuple[str, str],
    ids: tuple[tuple[int, int], tuple[int, int]] = ((0, 10), (100, 110)),
    **how: Any,
) -> list[dict[str, int]]:
    """Let both drivers write, release them at the same time, and return their results."""
    for driver, key, rows in zip(drivers, keys, ids, strict=True):
        driver.start_writing(spec, table, rows, key=key, **how)
    for driver in drivers:
        driver.arrive()
    for driver in drivers:
        driver.go_on()
    return [driver.answer() for driver in drivers]
