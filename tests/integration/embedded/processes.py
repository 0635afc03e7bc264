"""Observes processes, and runs the command line."""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

READY = re.compile(r"ready at (thrift://\S+) \(pid (\d+)")


@dataclass(frozen=True)
class CommandLine:
    """A running ``python -m airflow_provider_lancens.embedded`` that has printed that it is ready."""

    process: subprocess.Popen[str]
    uri: str
    server_pid: int

    def finish(self) -> tuple[int, str]:
        """Wait for its end, and return its exit code and standard error."""
        _, errors = self.process.communicate(timeout=60)
        return self.process.returncode, errors


def run_command(folder: Path, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "airflow_provider_lancens.embedded", "--folder", str(folder), *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@contextmanager
def serving(folder: Path) -> Iterator[CommandLine]:
    with run_command(folder) as process:
        try:
            assert process.stdout
            ready = READY.search(process.stdout.readline())
            assert ready
            yield CommandLine(process, uri=ready[1], server_pid=int(ready[2]))
        finally:
            process.kill()


def lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def ends_within(seconds: float, pid: int) -> bool:
    deadline = time.monotonic() + seconds
    while lives(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not lives(pid)


def listening_addresses(pid: int) -> set[str]:
    connections = psutil.Process(pid).net_connections("inet")
    return {connection.laddr.ip for connection in connections if connection.status == psutil.CONN_LISTEN}
