"""Runs of the models of keys: each example has a table of its own, and a number determines all of them."""

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from airflow_provider_lancens.spark.keys import key_attempts


@pytest.fixture
def short_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Move ids to segments after a few versions, rather than only on tables with many."""
    monkeypatch.setattr(key_attempts, "LONG", 4)


def check_in_any_order(
    machine: Callable[[Path], RuleBasedStateMachine], folder: Path, examples: int, steps: int, number: int = 0
) -> None:
    """Check so many examples, which the number determines."""
    numbers = itertools.count()

    def make() -> RuleBasedStateMachine:
        own = folder / str(next(numbers))
        own.mkdir()
        return machine(own)

    run_state_machine_as_test(seed(number)(make), settings=settings_of(examples, steps))


def settings_of(examples: int, steps: int) -> settings:
    """The settings by which so many examples are run, however long each takes."""
    return settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
