"""Drivers as processes of their own, steered from the test."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from airflow_provider_lancens.spark import NamespaceSpec
from tests.integration.spark.faults.steps import BEFORE_THE_COMMIT

SECONDS = 120


class Driver:
    """A running `driver.py`. It stops at a gate, wherever in its processes a write comes to a step.

    The gate is a named pipe: who stops there opens it to read, and goes on when the writing end is closed.
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
        """Give it a job, with arguments of `write_table`; it runs to a step, and waits there."""
        job = {"impl": spec.impl, "properties": dict(spec.properties), "table": table, "ids": ids}
        how["idempotency_key"] = key
        self._send(json.dumps({**job, "how": how, "way": way, "step": step, "gate": str(self._gate)}))

    def arrive(self) -> None:
        """Return when it stands at the step."""
        deadline = time.monotonic() + SECONDS
        while self._held is None:
            assert self.process.poll() is None, "the driver ended before it came to the step"
            assert time.monotonic() < deadline, "the driver didn't come to the step"
            try:
                self._held = os.open(self._gate, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:  # nobody has opened it to read
                time.sleep(0.01)

    def go_on(self) -> None:
        """Let it go on."""
        assert self._held is not None
        os.close(self._held)
        self._held = None

    def answer(self) -> dict[str, Any]:
        """Its next line."""
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line, f"the driver ended: {self.process.wait()}"
        answer: dict[str, Any] = json.loads(line)
        return answer

    def kill(self) -> None:
        """End it as the kernel does, with no chance to tidy up, and see that nobody stands at the gate."""
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
    """A driver that is still starting, with a session of this configuration; it answers when it is ready."""
    command = [sys.executable, "-m", "tests.integration.spark.faults.driver", json.dumps(conf)]
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
            # Its Spark ends with it: the JVM watches the pipe from its driver.
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
    """Let both drivers write, release them at one moment, and return their answers."""
    for driver, key, rows in zip(drivers, keys, ids, strict=True):
        driver.start_writing(spec, table, rows, key=key, **how)
    for driver in drivers:
        driver.arrive()
    for driver in drivers:
        driver.go_on()
    return [driver.answer() for driver in drivers]
