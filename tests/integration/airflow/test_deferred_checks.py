"""Deferred waits on tables in a folder, whose checks fail for a moment, or that are dropped meanwhile."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

try:  # Airflow 3.2 and newer
    from airflow.sdk.exceptions import TaskDeferred
except ImportError:
    from airflow.exceptions import TaskDeferred  # type: ignore[no-redef]

from airflow_provider_lancens.hooks.airflow_errors import LanceRetryableError
from airflow_provider_lancens.sensors import table_version_sensor
from airflow_provider_lancens.sensors.table_version_sensor import LanceTableVersionSensor
from tests.integration.airflow.folder_tables import ITEMS, ORDERS, Folder

CONTEXT: Any = {"ti": SimpleNamespace(dag_id="dag", run_id="run", task_id="wait", map_index=-1)}
CHECKS: dict[str, dict[str, Any]] = {
    "data_changed": {"after_version": 3},
    "index_covers": {"min_version": 4, "index": "n_idx"},
    "pin": {"min_version": 4, "pin": True},
}


@pytest.fixture(autouse=True)
def no_minimum(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let triggers fire at once, since no worker has to end."""
    monkeypatch.setenv("AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL", "0")


@pytest.fixture
def folder(connect: Callable[..., str], tmp_path: Path) -> Folder:
    """A folder with two tables."""
    folder = Folder(connect, tmp_path / "lake")
    for table in (ORDERS, ITEMS):
        folder.create(table)
    return folder


def sensor(folder: Folder, **arguments: Any) -> LanceTableVersionSensor:
    given = {"table": ORDERS, "poke_interval": 0.2, "timeout": 60, **arguments}
    return LanceTableVersionSensor(task_id="wait", lance_conn_id=folder.conn_id, **given)


def deferral(waiting: LanceTableVersionSensor) -> Any:
    with pytest.raises(TaskDeferred) as deferred:
        waiting.execute(CONTEXT)
    return deferred.value


def fired(trigger: Any) -> Any:
    async def first() -> Any:
        async for event in trigger.run():
            return event.payload
        return None

    return asyncio.run(asyncio.wait_for(first(), 30))


def fail_once(monkeypatch: pytest.MonkeyPatch, check: str, before: Callable[[], Any] | None = None) -> None:
    """Let a check of the sensor fail once as if the storage was throttled, or something precede its first."""
    real = getattr(table_version_sensor, check)
    calls: list[Any] = []

    def checked(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 1:
            if before is None:
                raise LanceRetryableError("503 SlowDown (code 17, SERVICE_UNAVAILABLE)")
            before()
        return real(*arguments)

    monkeypatch.setattr(table_version_sensor, check, checked)


@pytest.mark.parametrize("check", CHECKS)
def test_a_check_that_failed_is_repeated_although_the_version_stays(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, check: str
) -> None:
    folder.advance(versions=4)
    folder.catalog.table(ORDERS).dataset().create_scalar_index("n", "BTREE")
    fail_once(monkeypatch, check)
    waiting = sensor(folder, **CHECKS[check])

    deferred = deferral(waiting)
    found = waiting.execute_complete(CONTEXT, fired(deferred.trigger), **deferred.kwargs)

    assert found is not None
    assert found["version"] == 5


def test_a_failed_check_is_not_repeated_before_the_interval(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.advance(versions=4)
    fail_once(monkeypatch, "data_changed")

    assert deferral(sensor(folder, after_version=3, poke_interval=40)).trigger.min_wait == 40
    assert deferral(sensor(folder, after_version=9, poke_interval=40)).trigger.min_wait == 0


def test_a_failed_check_of_an_index_is_not_logged_as_missing_rows(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.advance(versions=4)
    fail_once(monkeypatch, "index_covers")

    deferral(sensor(folder, **CHECKS["index_covers"]))

    logged = capsys.readouterr().out
    assert "503 SlowDown" in logged
    assert "doesn't cover" not in logged


def test_with_any_a_table_whose_version_could_not_be_tagged_is_still_waited_for(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.advance(versions=4)
    fail_once(monkeypatch, "pin")
    waiting = sensor(folder, table=[ORDERS, ITEMS], wait_for="any", min_version=4, pin=True)

    deferred = deferral(waiting)
    found = waiting.execute_complete(CONTEXT, fired(deferred.trigger), **deferred.kwargs)

    assert found is not None
    assert found[ORDERS]["version"] == 4


@pytest.mark.parametrize("check", CHECKS)
def test_a_table_that_is_dropped_between_poll_and_check_is_waited_for(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, check: str
) -> None:
    folder.advance(versions=4)
    fail_once(monkeypatch, check, before=folder.drop)

    assert deferral(sensor(folder, **CHECKS[check]))


def test_a_recreated_table_that_reaches_the_bound_ends_the_wait_also_at_the_polled_version(
    folder: Folder,
) -> None:
    folder.advance(versions=1)
    folder.catalog.table(ORDERS).dataset().update_config({"a.key": "no data"})
    waiting = sensor(folder, after_version=1)
    deferred = deferral(waiting)

    folder.drop()
    folder.create(versions=2)
    found = waiting.execute_complete(CONTEXT, fired(deferred.trigger), **deferred.kwargs)

    assert found is not None
    assert found["version"] == 2
