"""A server process for tests."""

import re
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self


class Daemon:
    """A server process whose log shows when it is ready."""

    def __init__(self, command: Sequence[str | Path], environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._lines: list[str] = []
        self._arrived = threading.Condition()
        self._reader = threading.Thread(target=self._read_on, daemon=True)
        self._reader.start()

    def read(self, pattern: str) -> str:
        """The pattern's group in the next matching line; other lines are skipped."""
        passed: list[str] = []
        with self._arrived:
            while True:
                assert self._arrived.wait_for(lambda: self._lines, timeout=120), f"no line like {pattern!r}"
                line = self._lines.pop(0)
                passed.append(line)
                assert line, f"it ended before it said {pattern!r}:\n{''.join(passed[-40:])}"
                if found := re.search(pattern, line):
                    return found[1]

    def kill(self) -> None:
        """Kill it without a clean shutdown, as a lost machine would."""
        self._process.kill()
        self._process.wait()

    def _read_on(self) -> None:
        assert self._process.stdout is not None
        while True:
            line = self._process.stdout.readline()
            with self._arrived:
                self._lines.append(line)
                self._arrived.notify()
            if not line:
                return

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()
