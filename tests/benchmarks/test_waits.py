"""The cost of waits for many tables: 200 in every run, ten thousand in `long` runs."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.figures import Figure
from tests.bytecode import environment_with_bytecode

TREE = Path(__file__).parents[2]
MOST_STALL = 0.1
MOST_BYTES = 10 * 1024
WAITS = [10, 100, 1000]


def run(folder: Path, waits: int, databases: int, tick: float, ticks: int) -> dict[str, Any]:
    environment = environment_with_bytecode(folder)
    # The smallest run compiles all modules, which blocks every thread.
    smallest = [str(folder / "smallest"), "1", "1", "0.1", "1"]
    measured = [str(folder), str(waits), str(databases), str(tick), str(ticks)]
    for arguments in (smallest, measured):
        command = [sys.executable, "-m", "tests.benchmarks.waits", *arguments]
        done = subprocess.run(command, env=environment, cwd=TREE, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    sys.stdout.write(done.stdout)  # the numbers, shown by pytest -rA
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def check(found: dict[str, Any]) -> None:
    """Check the cost of polls; starting thousands of triggers stalls a process by their number alone."""
    for phase in ("cold", "warm"):
        cost = found[phase]
        assert cost["calls_a_tick"] <= found["databases"] + 2, found
        assert cost["connections"] == 1, found
        assert cost["stall_running"]["loop"] <= MOST_STALL, found
    assert found["bytes_a_wait"] <= MOST_BYTES, found


@pytest.mark.long
def test_two_hundred_waits_share_one_poll(tmp_path: Path) -> None:
    found = run(tmp_path, waits=200, databases=10, tick=1, ticks=4)
    check(found)
    assert found["naive_ratio"] > 10, found


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_waits(tmp_path: Path) -> None:
    """The CPU time is that of the process, with the proxy that counts the calls."""
    figure = Figure("waits", axis="waits")
    for waits in WAITS:
        found = run(tmp_path / str(waits), waits=waits, databases=10, tick=1, ticks=4)
        check(found)
        warm, naive = found["warm"], found["naive"]
        figure.add("calls of a poll", "shared", waits, [warm["calls_a_tick"]])
        figure.add("calls of a poll", "naive", waits, [naive["calls_a_wait"] * waits])
        figure.add("CPU seconds of a poll", "shared", waits, [warm["cpu_seconds_a_tick"]])
        figure.add("CPU seconds of a poll", "naive", waits, [naive["cpu_seconds_a_wait"] * waits])
        figure.add_ratio("calls, shared", "calls, naive", waits, 1 / found["naive_ratio"])
    figure.save()

    assert figure.medians("calls of a poll", "shared")[WAITS[-1]] <= 12


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_ten_thousand_waits_share_one_poll(tmp_path: Path) -> None:
    found = run(tmp_path, waits=10_000, databases=100, tick=60, ticks=3)
    check(found)
    assert found["naive_ratio"] > 100, found
