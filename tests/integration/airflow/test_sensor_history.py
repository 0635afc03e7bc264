"""A wait without a bound continues where the same task's previous run ended, in every mode."""

from collections.abc import Callable
from typing import Any

import lance
import pytest

from airflow_provider_lancens.hooks.airflow_errors import AirflowSensorTimeout
from tests.integration.airflow.tables import Table

Wait = Callable[..., Any]


def test_a_version_seen_by_an_earlier_run_does_not_end_the_wait(
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


def test_versions_committed_between_two_runs_end_the_wait_at_once(wait: Wait, table: Table) -> None:
    table.declare()
    table.advance()
    earlier = wait()
    table.advance()
    table.advance()
    assert wait(earlier) == {**earlier, "version": 3, "previous_version": 1}


def test_a_cleared_task_starts_from_the_previous_run_and_ends_at_once(wait: Wait, table: Table) -> None:
    table.declare()
    table.advance()
    earlier = wait()
    table.advance()
    first = wait(earlier)
    assert wait(earlier) == first  # its own XCom is cleared, so it reads that of the previous run again


def seen_and_recreated(wait: Wait, table: Table, versions: int) -> tuple[dict[str, Any], str]:
    """Wait for a table, and create it again with one version; return the former result, and where it is."""
    table.declare()
    for _ in range(versions):
        table.advance()
    earlier = wait()
    table.drop()
    location = table.declare()
    table.advance()
    return earlier, location


def test_a_recreated_table_ends_the_wait(wait: Wait, table: Table) -> None:
    earlier, location = seen_and_recreated(wait, table, versions=2)
    assert wait(earlier) == {**earlier, "location": location, "version": 1, "previous_version": 2}


def test_a_recreated_table_with_as_many_versions_is_read_from_its_first_one(wait: Wait, table: Table) -> None:
    earlier, location = seen_and_recreated(wait, table, versions=1)
    again = wait(earlier)
    table.advance()
    assert again == {**earlier, "location": location, "version": 1, "previous_version": None}
    assert wait(earlier) == {**again, "version": 2}


def test_a_dropped_table_is_waited_for_until_it_is_recreated(
    wait: Wait, table: Table, meanwhile: Any
) -> None:
    table.declare()
    table.advance()
    table.advance()
    earlier = wait()
    table.drop()
    waiting = meanwhile(wait, earlier=earlier)
    table.declare()
    table.advance()
    assert waiting.result(60)["version"] == 1


def test_a_recreated_table_does_not_end_a_wait_for_a_greater_version(wait: Wait, table: Table) -> None:
    table.declare()
    table.advance()
    with pytest.raises(AirflowSensorTimeout):
        wait(after_version=5, timeout=0.5)


def test_an_earlier_run_on_another_table_is_ignored(wait: Wait, table: Table) -> None:
    table.declare()
    table.advance()
    earlier = {"table": "sales$others", "version": 1, "previous_version": None, "location": "/lake/others"}
    assert wait(earlier)["version"] == 1


def test_a_restored_version_ends_the_wait(wait: Wait, table: Table) -> None:
    location = table.declare()
    table.advance()
    table.advance()
    earlier = wait()
    lance.dataset(location, version=1).restore()
    assert wait(earlier)["version"] == 3
