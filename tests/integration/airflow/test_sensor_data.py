"""Waits for changed data, and versions tagged for their readers, in every mode."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import lance
import pytest

from airflow_provider_lancens.hooks.airflow_errors import AirflowSensorTimeout
from airflow_provider_lancens.hooks.table_checks import data_changed
from airflow_provider_lancens.sensors import table_version_sensor
from tests.integration.airflow.lifecycle import PATIENCE
from tests.integration.airflow.tables import Table

Wait = Callable[..., Any]


@pytest.fixture
def location(table: Table) -> str:
    """The location of a table at version 3."""
    location = table.declare()
    for _ in range(3):
        table.advance()
    return location


def compact(location: str) -> int:
    """Commit versions that don't change data, and return the newest."""
    data = lance.dataset(location)
    data.optimize.compact_files()
    data.update_config({"a.key": "a value"})
    return int(lance.dataset(location).version)


def test_maintenance_alone_does_not_end_the_wait(wait: Wait, table: Table, location: str) -> None:
    assert compact(location) > 3
    with pytest.raises(AirflowSensorTimeout):
        wait(after_version=3, timeout=1)
    assert wait(after_version=3, data_only=False)["version"] > 3


def test_maintenance_ends_no_wait_without_a_bound_but_one_for_a_version_that_must_exist(
    wait: Wait, table: Table, location: str
) -> None:
    earlier = wait()
    newest = compact(location)

    with pytest.raises(AirflowSensorTimeout):
        wait(earlier, timeout=1)
    assert wait(earlier, data_only=False)["version"] == newest
    assert wait(min_version=newest)["version"] == newest


def test_data_committed_after_maintenance_ends_the_wait(
    wait: Wait, table: Table, location: str, meanwhile: Any
) -> None:
    waiting = meanwhile(wait, after_version=3)
    compact(location)
    newest = table.advance()
    found = waiting.result(PATIENCE)
    assert (found["version"], found["previous_version"]) == (newest, 3)


def test_data_committed_before_maintenance_ends_the_wait_at_the_newest_version(
    wait: Wait, table: Table, location: str
) -> None:
    table.advance()
    newest = compact(location)
    assert wait(after_version=3)["version"] == newest


def test_data_committed_after_a_poll_ends_the_wait_at_its_own_version(
    wait: Wait, table: Table, location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compact(location)
    committed: list[int] = []

    def commit_and_check(*arguments: Any) -> bool:
        if not committed:
            committed.append(table.advance())
        return data_changed(*arguments)

    monkeypatch.setattr(table_version_sensor, "data_changed", commit_and_check)
    found = wait(after_version=3)
    assert (found["version"], found["previous_version"]) == (committed[0], 3)


def test_a_change_is_detected_after_its_history_was_cleaned_up(
    wait: Wait, table: Table, location: str
) -> None:
    table.advance()
    newest = compact(location)
    lance.dataset(location).cleanup_old_versions(timedelta(0))
    assert wait(after_version=3)["version"] == newest


def test_a_recreated_table_counts_as_changed_data(wait: Wait, table: Table, location: str) -> None:
    earlier = wait()
    table.drop()
    table.declare()
    table.advance()
    assert wait(earlier)["version"] == 1


def test_the_returned_version_is_tagged_for_its_readers(wait: Wait, table: Table, location: str) -> None:
    found = wait(pin=True)
    assert (found["version"], found["tag"]) == (3, "dag.run.wait")
    table.advance()
    lance.dataset(location).cleanup_old_versions(timedelta(0), error_if_tagged_old_versions=False)
    assert lance.dataset(location, version=found["tag"]).count_rows() == 3


def test_a_rerun_task_moves_its_own_tag(wait: Wait, table: Table, location: str) -> None:
    wait(pin=True)
    table.advance()
    found = wait(pin=True)
    assert lance.dataset(location, version=found["tag"]).version == 4


def test_the_wait_ends_once_the_index_covers_the_awaited_rows(
    wait: Wait, table: Table, location: str, meanwhile: Any
) -> None:
    lance.dataset(location).create_scalar_index("n", "BTREE", name="an_index")
    awaited = table.advance()
    waiting = meanwhile(wait, min_version=awaited, index="an_index")
    table.advance()

    lance.dataset(location).optimize.optimize_indices()
    newest = table.advance()

    assert waiting.result(PATIENCE)["version"] in (newest - 1, newest)


def test_the_wait_goes_on_while_there_is_no_such_index(wait: Wait, table: Table, location: str) -> None:
    with pytest.raises(AirflowSensorTimeout):
        wait(index="an_index", timeout=1)
    assert wait(index="")["version"] == 3
