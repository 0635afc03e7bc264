"""Drivers as processes of their own, steered from the test."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow_provider_lancens.spark import NamespaceSpec


@dataclass(frozen=True)
class Driver:
    """A running `driver.py`."""

    process: subprocess.Popen[str]

    def start_writing(
        self, spec: NamespaceSpec, table: str, ids: tuple[int, int], *, key: str, **how: Any
    ) -> None:
        """Give it a job, with arguments of `write_table`; it runs to its commit, and waits there."""
        job = {"impl": spec.impl, "properties": dict(spec.properties), "table": table}
        self._send(json.dumps({**job, "ids": ids, "how": {"idempotency_key": key, **how}}))

    def arrive_at_commit(self) -> None:
        """Return when its files are written and nothing is committed."""
        assert self.answer() == {"paused": True}

    def go_on(self) -> None:
        """Let it commit."""
        self._send("")

    def answer(self) -> dict[str, Any]:
        """Its next line."""
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line, f"the driver ended: {self.process.wait()}"
        answer: dict[str, Any] = json.loads(line)
        return answer

    def kill(self) -> None:
        """End it as the kernel does, with no chance to tidy up."""
        self.process.kill()
        self.process.wait()

    def _send(self, line: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()


@contextmanager
def running_driver() -> Iterator[Driver]:
    """A driver that is still starting; its first answer says that it is ready."""
    script = Path(__file__).with_name("driver.py")
    with subprocess.Popen(
        [sys.executable, str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            yield Driver(process)
        finally:
            # Its Spark ends with it: the JVM watches the pipe from its driver.
            process.kill()
