"""A shell in which a test enters the commands of a page, one block after the other."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

_ELLIPSIS = "…"
_POLL_SECONDS = 0.2


class Terminal:
    """A bash process that keeps its folder, variables and background jobs between blocks.

    Args:
        folder: for its output, and for the blocks as files.
        environment: its environment variables.
        patience: seconds that a block may take.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str], patience: float) -> None:
        self._folder, self._patience, self._blocks = folder, patience, 0
        self._log = folder / "output.log"
        with self._log.open("wb") as output:
            self._bash = subprocess.Popen(
                ["bash", "--norc"],
                cwd=folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )

    def enter(self, commands: str, expected: Sequence[str] = (), status: int = 0) -> None:
        """Run commands, and wait until they ended and all lines were printed.

        Args:
            commands: lines of shell.
            expected: lines that the output contains, in this order; ``…`` stands for any text.
            status: the exit status of the last command.
        """
        self._blocks += 1
        block = self._folder / f"block-{self._blocks}.sh"
        block.write_text(commands)
        begin = len(self.output)
        assert self._bash.stdin is not None
        # From a file, since a command could read the next ones if they were its standard input.
        self._bash.stdin.write(f'source {block} </dev/null; echo "[block {self._blocks}: $?]"\n')
        self._bash.stdin.flush()
        done = f"[block {self._blocks}: {status}]"
        self._wait_for([done], done, begin, commands)
        self._wait_for(expected, done, begin, commands)

    @property
    def output(self) -> str:
        """What was printed so far."""
        return self._log.read_text(errors="replace")

    def _wait_for(self, lines: Sequence[str], done: str, begin: int, commands: str) -> None:
        pattern = re.compile(".*".join(map(_pattern, lines)), re.DOTALL)
        deadline = time.monotonic() + self._patience
        while not pattern.search(self.output[begin:]):
            ended = re.search(r"^\[block \d+: \d+\]$", self.output[begin:], re.MULTILINE)
            if time.monotonic() > deadline or (ended and ended[0] != done):
                pytest.fail(f"{commands}\nwas to print {lines}, and {done}:\n{self.output[begin:]}")
            time.sleep(_POLL_SECONDS)

    def close(self) -> None:
        """End the shell and its jobs."""
        assert self._bash.stdin is not None
        self._bash.stdin.close()
        try:
            self._bash.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(self._bash.pid, signal.SIGTERM)
            self._bash.wait()


def _pattern(line: str) -> str:
    parts = (re.escape(part.strip()) for part in line.split(_ELLIPSIS))
    return "[^\n]*?".join(parts)
