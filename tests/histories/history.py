"""A history: random steps on a table, checked after each. One that fails is shortened."""

import random
import shutil
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from lance_namespace.errors import LanceNamespaceError

from tests.histories.checks import MismatchError, check
from tests.histories.foreign_steps import FOREIGN
from tests.histories.own_steps import OWN, Step, first_write
from tests.histories.table import Table
from tests.histories.upkeep_steps import UPKEEP
from tests.histories.values import ZONES
from tests.histories.work import Work

MakeTable = Callable[[Path], Table]
Drawn = tuple[Step, int]
"""A step, and the seed of its arguments."""

_REFUSALS = (0, 5, 11, 13, 14, 19, 20)
"""Codes of errors by which a verb may refuse a step; others aren't expected here."""
_STEPS: dict[Step, int] = OWN | FOREIGN | UPKEEP
_UNTRIED = 400
"""The most histories that are run to shorten one."""


@dataclass
class Outcome:
    """What came of a history."""

    seed: int
    script: list[str]
    problem: str | None = None
    counts: Counter[str] = field(default_factory=Counter)
    """How often each step was made and refused, and each check made."""
    steps: int = 0

    def __str__(self) -> str:
        return "\n".join([f"seed {self.seed}: {self.problem}", *(f"    {line}" for line in self.script)])


def draw(seed: int, steps: int) -> list[Drawn]:
    """Return the steps of a history."""
    chance = random.Random(seed)
    return [
        (step, chance.getrandbits(32))
        for step in chance.choices(list(_STEPS), list(_STEPS.values()), k=steps)
    ]


def run(make: MakeTable, seed: int, drawn: Sequence[Drawn], *, stable: bool | None = None) -> Outcome:
    """Run a history on a new table.

    Args:
        make: declares a table in a folder.
        seed: the seed of the first write and of what is checked.
        drawn: the steps.
        stable: whether the table has stable row ids; None draws it.
    """
    folder = Path(tempfile.mkdtemp(prefix="history-"))
    outcome = Outcome(seed, [])
    try:
        work = Work(make(folder), seed % 3 != 0 if stable is None else stable, script=outcome.script)
        zone = random.Random(f"zone {seed}").choice(ZONES)
        work.table.set_zone(zone)
        outcome.script.append(f"# stable row ids: {work.stable}, managed: {work.table.managed}, zone: {zone}")
        for step, arguments in [(first_write, seed), *drawn]:
            outcome.counts[take(work, step, arguments)] += 1
            outcome.steps += 1
            at_the_end = outcome.steps > len(drawn)
            outcome.counts.update(check(work, random.Random(arguments), at_the_end=at_the_end))
    except MismatchError as error:
        outcome.problem = str(error)
    except Exception as error:  # noqa: BLE001 each that wasn't expected is a finding
        outcome.problem = "".join(traceback.format_exception(error)[-6:])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return outcome


def take(work: Work, step: Step, arguments: int) -> str:
    """Take a step, and note in the model what it must have done; return what came of it."""
    name = step.__name__
    before = work.model.states.get(work.model.newest)
    try:
        expected = step(work, random.Random(arguments))
        done = name if expected is not None else f"{name}: nothing to do"
    except LanceNamespaceError as error:
        if int(error.code) not in _REFUSALS:
            raise
        done, expected = f"{name}: refused ({int(error.code)})", before
        work.script.append(f"# {error}")
    except BaseException as error:
        # Lance's panics aren't exceptions. What another client can't do is not our matter.
        if step not in FOREIGN or isinstance(error, (KeyboardInterrupt, MismatchError)):
            raise
        done, expected = f"{name}: failed ({type(error).__name__})", before
        work.script.append(f"# {error}")
    if done != name:
        work.script.append(f"# {done}")
    state = expected or before
    if state is not None:
        version = work.table.open().version
        work.model.newest = version
        work.model.states[version] = state
    return done


def shortened(make: MakeTable, seed: int, drawn: Sequence[Drawn], *, stable: bool | None = None) -> Outcome:
    """Return the outcome of the fewest steps that were found to fail, too."""
    steps, left = list(drawn), _UNTRIED
    failed = run(make, seed, steps, stable=stable)
    steps = steps[: failed.steps]
    size = max(1, len(steps) // 2)
    while size and left:
        for start in range(0, len(steps), size):
            fewer = [*steps[:start], *steps[start + size :]]
            left -= 1
            with suppress(Exception):
                again = run(make, seed, fewer, stable=stable)
                if again.problem is not None and _kind(again) == _kind(failed):
                    steps, failed = fewer, again
                    break
        else:
            size //= 2
    return failed


def _kind(outcome: Outcome) -> str:
    return (outcome.problem or "").strip().splitlines()[-1][:12]
