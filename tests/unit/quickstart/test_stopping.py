"""Ctrl-C and SIGTERM end the quickstart with its processes: cleanly, or at once at the second signal."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from quickstart.stopping import STOPPING

PROGRAM = """
import sys, time
from pathlib import Path
from quickstart.children import Children
from quickstart.stopping import Stopped, stopping_on_signals

children = Children(stop_seconds=float(sys.argv[2]))
try:
    with stopping_on_signals(children, lambda line: print(line, flush=True)):
        child = children.start("child", ["bash", "-c", sys.argv[3]], Path(sys.argv[1]))
        print(child.pid, flush=True)
        time.sleep(60)
except Stopped as stopped:
    children.stop()
    print("stopped", flush=True)
    sys.exit(stopped.exit_code)
"""
OBEDIENT = "sleep 60 & echo $! ; wait"
STUBBORN = "trap '' TERM; sleep 60 & echo $! ; wait"


@contextmanager
def running(
    log: Path, child: str, stop_seconds: float, program: str = PROGRAM
) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(
        [sys.executable, "-c", program, str(log), str(stop_seconds), child],
        cwd=Path(__file__).parents[3],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def line_of(process: "subprocess.Popen[str]") -> str:
    """The next line that isn't empty: one that the signal interrupts is ended before the next."""
    assert process.stdout
    return next(filter(None, map(str.strip, process.stdout)), "")


def grandchild(log: Path) -> int:
    """The process that the child has started, once it has."""
    while not (text := log.read_text()).endswith("\n"):
        pass
    return int(text)


def all_ended(pids: list[int]) -> bool:
    """Whether the processes end, as they do soon after SIGKILL."""
    deadline = time.monotonic() + 10
    while any(map(is_running, pids)) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not any(map(is_running, pids))


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("child", [OBEDIENT, STUBBORN], ids=["obedient", "stubborn"])
def test_the_first_signal_ends_all_processes(tmp_path: Path, number: int, child: str) -> None:
    log = tmp_path / "log"
    with running(log, child, stop_seconds=0.5) as process:
        pids = [int(line_of(process)), grandchild(log)]

        os.kill(process.pid, number)

        assert [line_of(process), line_of(process)] == [STOPPING, "stopped"]
        assert process.wait(10) == 128 + number
        assert all_ended(pids)


def test_a_signal_that_interrupts_a_print_stops_too(tmp_path: Path) -> None:
    # When a nested print fails depends on the very instruction that the signal interrupts.
    program = f"def fail(line): raise RuntimeError('reentrant call')\n{PROGRAM}".replace(
        "lambda line: print(line, flush=True)", "fail"
    )
    with running(tmp_path / "log", OBEDIENT, stop_seconds=0.5, program=program) as process:
        pids = [int(line_of(process)), grandchild(tmp_path / "log")]

        os.kill(process.pid, signal.SIGINT)

        assert [line_of(process), line_of(process)] == [STOPPING, "stopped"]
        assert process.wait(10) == 128 + signal.SIGINT
        assert all_ended(pids)


def test_the_second_signal_ends_them_at_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with running(log, STUBBORN, stop_seconds=60) as process:
        pids = [int(line_of(process)), grandchild(log)]

        os.kill(process.pid, signal.SIGINT)
        assert line_of(process) == STOPPING
        os.kill(process.pid, signal.SIGINT)

        assert process.wait(5) == 128 + signal.SIGINT
        assert all_ended(pids)


def test_ctrl_c_in_a_terminal_reaches_only_the_quickstart(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with running(log, OBEDIENT, stop_seconds=5) as process:
        child = int(line_of(process))

        assert os.getpgid(child) == child != os.getpgid(process.pid)
        process.send_signal(signal.SIGINT)
        process.wait(10)
