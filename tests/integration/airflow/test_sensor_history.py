"""A wait with no bound goes on where the same task's earlier run ended, in every mode."""

from collections.abc import Callable
from typing import Any

import lance
import pytest
from airflow.providers.common.compat.sdk import AirflowSensorTimeout

from tests.integration.airflow.tables import Table

Wait = Callable[..., Any]


def test_a_version_that_an_earlier_run_saw_does_not_end_the_wait(
    wait: Wait, table: Table, meanwhile: Any
) -> None:
    table.declare()
    table.advance()
    earlier = wait()
    with pytest.raises(AirflowSensorTimeout):
        wait(earlier, timeout=0.5)
    waiting = meanwhile(wait, earlier=earlier)
    table.advance()
    assert waiting.result(60) == {**earlier, "version": 2, "previous_version": 1}


def test_versions_that_came_between_two_runs_end_the_wait_at_once(wait: Wait, table: Table) -> None:
    table.declare()
    table.advance()
    earlier = wait()
    table.advance()
    table.advance()
    assert wait(earlier) == {**earlier, "version": 3, "previous_version": 1}


def test_a_cleared_task_answers_at_once_since_it_starts_from_the_run_before_it(
    wait: Wait, table: Table
) -> None:
    table.declare()
    table.advance()
    earlier = wait()
    table.advance()
    first = wait(earlier)
    assert wait(earlier) == first  # its own XCom is cleared, so it sees that of the run before again


def test_a_table_that_was_dropped_and_made_again_ends_the_wait(wait: Wait, table: Table) -> None:
    table.declare()
    table.advance()
    table.advance()
    earlier = wait()
    table.namespace.drop_table({"id": table.id})
    table.declare()
    table.advance()
    assert wait(earlier) == {**earlier, "version": 1, "previous_version": 2}


def test_a_table_that_is_gone_is_waited_for_until_it_is_made_again(
    wait: Wait, table: Table, meanwhile: Any
) -> None:
    table.declare()
    table.advance()
    table.advance()
    earlier = wait()
    table.namespace.drop_table({"id": table.id})
    waiting = meanwhile(wait, earlier=earlier)
    table.declare()
    table.advance()
    assert waiting.result(60)["version"] == 1


def test_a_table_made_again_does_not_end_a_wait_for_a_greater_version(wait: Wait, table: Table) -> None:
    table.declare()
    table.advance()
    with pytest.raises(AirflowSensorTimeout):
        wait(after_version=5, timeout=0.5)


def test_an_earlier_run_on_another_table_says_nothing(wait: Wait, table: Table) -> None:
    table.declare()
    table.advance()
    earlier = {"table": "sales$others", "version": 1, "previous_version": None, "location": "/lake/others"}
    assert wait(earlier)["version"] == 1


def test_a_restored_version_is_news(wait: Wait, table: Table) -> None:
    location = table.declare()
    table.advance()
    table.advance()
    earlier = wait()
    lance.dataset(location, version=1).restore()
    assert wait(earlier)["version"] == 3
