"""Medians of everyday steps, and their ratios to a former commit, by processes of both trees in turn.

``git worktree add ../base COMMIT``, then with ``LANCENS_BASE=../base``
``pytest -s tests/benchmarks/test_everyday_steps.py``.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest

TREE = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("everyday_steps.py")
ROUNDS = 7
SLOWEST = 1.0
"""Seconds that no step takes: what is more is a request that waits, not a slow machine."""


def measure(tree: Path) -> dict[str, float]:
    """Run the program on the modules of a tree."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM)],
        env={**os.environ, "PYTHONPATH": str(tree)},
        cwd=tree,
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, float] = json.loads(done.stdout[done.stdout.rindex("{") : done.stdout.rindex("}") + 1])
    return found


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_everyday_steps_are_quick() -> None:
    base = os.environ.get("LANCENS_BASE")
    trees = {"now": TREE, **({"base": Path(base).resolve()} if base else {})}
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in trees}
    for number in range(ROUNDS):
        for name in sorted(trees, reverse=bool(number % 2)):
            rounds[name].append(measure(trees[name]))
    for step in rounds["now"][0]:
        now = [one[step] for one in rounds["now"]]
        text = f"{step}: {median(now) * 1000:.1f} ms"
        if base:
            ratios = [one / other[step] for one, other in zip(now, rounds["base"], strict=True)]
            text += f", {median(ratios):.2f} times the base's ({min(ratios):.2f} to {max(ratios):.2f})"
        sys.stdout.write(f"{text}\n")
        assert median(now) < SLOWEST, text
