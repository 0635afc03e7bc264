"""Processes that the quickstart starts and ends, each with its own children.

Each is the leader of a session of its own, and ends by a signal to its process group. Ctrl-C in a terminal
therefore reaches only the quickstart, which decides how to end the others.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

STOP_SECONDS = 6
"""How long processes may take to end after SIGTERM; then they are killed."""


class Children:
    """Processes by name.

    Args:
        stop_seconds: how long processes that are stopped together may take to end.
    """

    def __init__(self, stop_seconds: float = STOP_SECONDS) -> None:
        self._stop_seconds = stop_seconds
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __getitem__(self, name: str) -> subprocess.Popen[bytes]:
        return self._running[name]

    def start(
        self, name: str, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a process, for the first time or again; its output is appended to a log.

        Args:
            name: identifies the process among these.
            command: what to run.
            log: the file for its output.
            environment: its environment variables; by default those of this process.
        """
        with log.open("ab") as output:
            self._running[name] = subprocess.Popen(
                command, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
        return self._running[name]

    def stop(self, *names: str) -> None:
        """End processes by SIGTERM, and what is left of them after a while by SIGKILL.

        Args:
            names: which ones; all if none is given.
        """
        children = [self._running[name] for name in names or self._running]
        for child in children:
            _signal_group(child, signal.SIGTERM)
        deadline = time.monotonic() + self._stop_seconds
        for child in children:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(max(0.1, deadline - time.monotonic()))
        _kill(children)

    def kill(self, *names: str) -> None:
        """End processes at once by SIGKILL; all if no name is given."""
        _kill([self._running[name] for name in names or self._running])


def _kill(children: Sequence[subprocess.Popen[bytes]]) -> None:
    for child in children:
        _signal_group(child, signal.SIGKILL)
    for child in children:
        child.wait()


def _signal_group(child: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # all its processes have ended
        os.killpg(child.pid, number)
