"""Waits for data alone, and versions that are kept for their readers, in every mode."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import lance
import pytest
from airflow.providers.common.compat.sdk import AirflowSensorTimeout

from tests.integration.airflow.tables import Table

Wait = Callable[..., Any]


@pytest.fixture
def location(table: Table) -> str:
    """Of a table at version 3."""
    place = table.declare()
    for _ in range(3):
        table.advance()
    return place


def compact(location: str) -> int:
    """Make versions that change no data, and return the newest."""
    data = lance.dataset(location)
    data.optimize.compact_files()
    data.update_config({"a.key": "a value"})
    return int(lance.dataset(location).version)


def test_maintenance_alone_does_not_end_the_wait(wait: Wait, table: Table, location: str) -> None:
    assert compact(location) > 3
    with pytest.raises(AirflowSensorTimeout):
        wait(after_version=3, data_only=True, timeout=1)
    assert wait(after_version=3)["version"] > 3


def test_data_that_comes_after_maintenance_ends_the_wait(
    wait: Wait, table: Table, location: str, meanwhile: Any
) -> None:
    waiting = meanwhile(wait, after_version=3, data_only=True)
    compact(location)
    newest = table.advance()
    found = waiting.result(60)
    assert (found["version"], found["previous_version"]) == (newest, 3)


def test_data_before_maintenance_ends_the_wait_at_the_newest_version(
    wait: Wait, table: Table, location: str
) -> None:
    table.advance()
    newest = compact(location)
    assert wait(after_version=3, data_only=True)["version"] == newest


def test_a_change_whose_history_was_cleaned_up_is_not_missed(wait: Wait, table: Table, location: str) -> None:
    table.advance()
    newest = compact(location)
    lance.dataset(location).cleanup_old_versions(timedelta(0))
    assert wait(after_version=3, data_only=True)["version"] == newest


def test_a_table_made_again_counts_as_data(wait: Wait, table: Table, location: str) -> None:
    earlier = wait()
    table.namespace.drop_table({"id": table.id})
    table.declare()
    table.advance()
    assert wait(earlier, data_only=True)["version"] == 1


def test_the_version_that_is_handed_on_is_kept_for_its_readers(
    wait: Wait, table: Table, location: str
) -> None:
    found = wait(pin=True)
    assert (found["version"], found["tag"]) == (3, "dag.run.wait")
    table.advance()
    lance.dataset(location).cleanup_old_versions(timedelta(0), error_if_tagged_old_versions=False)
    assert lance.dataset(location, version=found["tag"]).count_rows() == 3


def test_a_task_that_runs_again_moves_its_own_tag(wait: Wait, table: Table, location: str) -> None:
    wait(pin=True)
    table.advance()
    found = wait(pin=True)
    assert lance.dataset(location, version=found["tag"]).version == 4
