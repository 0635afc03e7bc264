"""Random events of a managed table, in any order, compared with a model."""

import itertools

import pytest
from hypothesis.stateful import run_state_machine_as_test

from tests.integration.managed.state_machine import ManagedTableMachine
from tests.support.lakes import Lake
from tests.unit.spark.keys.random_events import settings_of


def check_in_any_order(lake: Lake, database: str, examples: int, steps: int) -> None:
    numbers = itertools.count()
    with lake.connect() as ours, lake.connect() as others:
        ours.create_namespace({"id": [database]})
        run_state_machine_as_test(
            lambda: ManagedTableMachine(lake, (ours, others), (database, f"t{next(numbers)}")),
            settings=settings_of(examples, steps),
        )


@pytest.mark.thorough
def test_a_table_matches_the_model_after_random_events(hive: Lake, database: str) -> None:
    check_in_any_order(hive, database, examples=6, steps=12)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_table_matches_the_model_after_many_random_events_on_every_backend(
    lake: Lake, database: str
) -> None:
    check_in_any_order(lake, database, examples=100, steps=40)
