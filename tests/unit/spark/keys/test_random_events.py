"""Random events of a table that is written under keys, in any order, compared with a model."""

import itertools
from pathlib import Path

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from airflow_provider_lancens.spark.keys import key_index
from tests.unit.spark.keys.key_state_machine import KeyedTableMachine


@pytest.fixture(autouse=True)
def short_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Move ids to segments after a few versions, rather than only on tables with many."""
    monkeypatch.setattr(key_index, "LONG", 4)


def check_in_any_order(folder: Path, examples: int, steps: int, number: int = 0) -> None:
    """Check so many examples, which the number determines."""
    numbers = itertools.count()

    def machine() -> KeyedTableMachine:
        own = folder / str(next(numbers))
        own.mkdir()
        return KeyedTableMachine(own)

    run_state_machine_as_test(
        seed(number)(machine),
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            database=None,
        ),
    )


def test_each_key_writes_its_row_once_after_random_events(tmp_path: Path) -> None:
    check_in_any_order(tmp_path, examples=5, steps=15)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_each_key_writes_its_row_once_after_many_random_events(tmp_path: Path) -> None:
    check_in_any_order(tmp_path, examples=200, steps=50)
