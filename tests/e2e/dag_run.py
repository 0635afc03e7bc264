"""DAG runs by Airflow that a test can observe, each in its own process or in a shared one."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

TREE = Path(__file__).parents[2]


class RunProcess(subprocess.Popen[str]):
    """A process of `run_dag`.

    Args:
        arguments: see `run_dag`.
        environment: the environment variables of Airflow.

    Attributes:
        output: the lines that it prints. A thread receives them: the process never waits for its test.
    """

    output: Iterator[str]

    def __init__(self, arguments: list[str], environment: Mapping[str, str]) -> None:
        super().__init__(
            [sys.executable, "-m", "tests.e2e.run_dag", *arguments],
            env=environment,
            cwd=TREE,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        received: SimpleQueue[str | None] = SimpleQueue()
        self.output = iter(received.get, None)
        threading.Thread(target=self._receive, args=[received], daemon=True).start()

    def _receive(self, received: "SimpleQueue[str | None]") -> None:
        assert self.stdout is not None
        with self.stdout:
            for line in self.stdout:
                received.put(line)
        received.put(None)

    def end(self) -> None:
        """End it at once."""
        self.kill()
        self.wait()
        assert self.stdin is not None
        self.stdin.close()


class DagRun:
    """A DAG run in another process, whose log is read while it runs."""

    def __init__(self, process: RunProcess) -> None:
        self._process = process
        self._lines: list[str] = []

    def wait_for(self, text: str) -> None:
        """Read the log until a line contains this text."""
        for line in self._process.output:
            self._lines.append(line)
            if text in line:
                return
        pytest.fail(f"the run ended without {text!r}:\n{self.log}")

    def is_running(self) -> bool:
        """Whether its process hasn't ended."""
        return self._process.poll() is None

    def signal(self, number: int) -> None:
        """Send a signal to its process."""
        self._process.send_signal(number)

    def result(self) -> dict[str, Any]:
        """Wait for its end, and return each task's state and XCom by task id."""
        self._lines += self._process.output
        assert self._process.wait() == 0, self.log
        # Spark may still log lines after the last line.
        return self._outcome()

    @property
    def log(self) -> str:
        return "".join(self._lines)

    def _outcome(self) -> dict[str, Any]:
        last = next(line for line in reversed(self._lines) if line.startswith("{"))
        outcome: dict[str, Any] = json.loads(last)
        return outcome


class SharedDagRun(DagRun):
    """A run in a process that continues with other runs."""

    ended = False

    def result(self) -> dict[str, Any]:
        """Wait for its end, and return each task's state and XCom by task id."""
        for line in self._process.output:
            self._lines.append(line)
            if line.startswith("{"):
                self.ended = True
                return self._outcome()
        pytest.fail(f"the process ended before the run:\n{self.log}")


class DagRunner:
    """A process that runs one DAG after another, so that Airflow is imported once.

    Args:
        environment: the environment variables of Airflow.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._process: RunProcess | None = None
        self._newest: SharedDagRun | None = None

    def start(self, file: Path, params: Mapping[str, Any], environment: Mapping[str, str]) -> SharedDagRun:
        """Start a run of the DAG in a file with these parameters and additional environment variables."""
        if self._newest and not self._newest.ended:
            self.stop()  # by a test that failed
        if self._process is None:
            self._process = RunProcess([], self._environment)
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([str(file), json.dumps(params), dict(environment)]) + "\n")
        self._process.stdin.flush()
        self._newest = SharedDagRun(self._process)
        return self._newest

    def stop(self) -> None:
        """End the process at once."""
        if self._process is not None:
            self._process.end()
        self._process = self._newest = None


def dag_run(
    file: Path | str, params: Mapping[str, Any], environment: Mapping[str, str]
) -> AbstractContextManager[DagRun]:
    """Run the DAG in a file with these parameters in its own process."""
    return dag_runs([str(file), json.dumps(params)], environment)


@contextmanager
def dag_runs(arguments: list[str], environment: Mapping[str, str]) -> Iterator[DagRun]:
    """Run DAGs one after the other in a process, which ends with the block: see `run_dag`."""
    process = RunProcess(arguments, environment)
    try:
        yield DagRun(process)
    finally:
        process.end()
