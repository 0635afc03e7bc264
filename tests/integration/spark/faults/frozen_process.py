"""Processes that SIGSTOP suspends at a step, controlled by tests."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from airflow_provider_lancens.spark import NamespaceSpec

SECONDS = 240


class Writer:
    """A running `writer_process.py`."""

    def __init__(self, process: "subprocess.Popen[str]", folder: Path) -> None:
        self._process = process
        self._folder = folder
        self._jobs = 0

    @contextmanager
    def frozen(self, spec: NamespaceSpec, table: str, action: str, step: str) -> Iterator[None]:
        """Suspend it at a step for the duration of the block; afterwards it continues."""
        self._freeze(spec, table, action, step)
        try:
            yield
        finally:
            os.kill(self._process.pid, signal.SIGCONT)

    def kill(self, spec: NamespaceSpec, table: str, action: str, step: str) -> None:
        """Kill it at a step by SIGKILL."""
        self._freeze(spec, table, action, step)
        self._process.kill()
        self._process.wait()

    def _freeze(self, spec: NamespaceSpec, table: str, action: str, step: str) -> None:
        self._jobs += 1
        note = self._folder / str(self._jobs)
        job = {"impl": spec.impl, "properties": dict(spec.properties), "table": table}
        assert self._process.stdin
        self._process.stdin.write(
            json.dumps({**job, "action": action, "step": step, "note": str(note)}) + "\n"
        )
        self._process.stdin.flush()
        wait_for(lambda: state_of(self._process.pid) == "T")

    def answer(self) -> dict[str, Any]:
        """The result of the job."""
        return read_result(self._process)


def read_result(process: "subprocess.Popen[str]") -> dict[str, Any]:
    """Return the next line of a process's output, which is a result in JSON."""
    assert process.stdout
    line = process.stdout.readline()
    assert line, f"the process ended: {process.wait()}"
    result: dict[str, Any] = json.loads(line)
    return result


def wait_for(is_frozen: Callable[[], object]) -> None:
    """Return once a process is suspended."""
    deadline = time.monotonic() + SECONDS
    while not is_frozen():
        assert time.monotonic() < deadline, "it didn't come to the step"
        time.sleep(0.01)


def state_of(pid: int) -> str:
    """The kernel's state of a process: ``T`` if it is stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@contextmanager
def running_writer() -> Iterator[Writer]:
    """A writer that waits for jobs."""
    command = [sys.executable, "-m", "tests.integration.spark.faults.writer_process"]
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(
            command,
            cwd=Path(__file__).parents[4],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        try:
            yield Writer(process, Path(folder))
        finally:
            process.kill()
