"""Writes of several threads of a TaskFlow task."""

import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import BaseOperator
from airflow.sdk.execution_time.context import OutletEventAccessors

from airflow_provider_lancens.assets import event_records
from airflow_provider_lancens.assets.table import lance_table
from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.operators.taskflow import BlockExecution, SharedTaskState

THREADS = 8


def test_a_write_without_a_key_is_refused_while_another_one_is_made_whatever_their_rows_are() -> None:
    task = SharedTaskState(())
    with task.writing("db$t", lambda: "rows 1", is_counted=True):
        refused = pytest.raises(AirflowFailException, match="is writing to it without a key, for which")
        with refused, task.writing("db$t", lambda: "rows 2", is_counted=True):
            pass
        with (
            task.writing("db$t", lambda: "a key", is_counted=False),
            task.writing("db$u", lambda: "rows 2", is_counted=True),
        ):
            pass
        again = pytest.raises(AirflowFailException, match="under the key 'rows 1'")
        with again, task.writing("db$t", lambda: "rows 1", is_counted=False):
            pass
    with task.writing("db$t", lambda: "rows 2", is_counted=True):
        pass


def test_the_event_of_a_task_covers_the_writes_of_all_its_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    outlet, events, pushed = lance_table("db$t", "lake"), OutletEventAccessors(), dict[str, Any]()
    instance = SimpleNamespace(xcom_push=lambda key, value: pushed.update({key: list(value)}))
    task = BaseOperator(task_id="own", outlets=[outlet])
    context: Any = {"ti": instance, "task": task, "outlet_events": events}
    writes = BlockExecution(SimpleNamespace(asset_authority="lake"), context)  # type: ignore[arg-type]
    record_of = event_records.record_of

    def slow(extra: Any) -> dict[str, Any] | None:
        found = record_of(extra)
        time.sleep(0.01)
        return found

    def report(version: int) -> None:
        result: Any = SimpleNamespace(
            is_outdated=False,
            version=version,
            previous_version=version - 1 or None,
            event={"inserted": 1},
            as_dict=lambda: {"version": version},
        )
        writes.report(TableId.parse("db$t"), result)

    monkeypatch.setattr(event_records, "record_of", slow)
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(report, range(1, THREADS + 1)))

    extra = events[outlet].extra
    assert (extra["previous_version"], extra["version"]) == (None, THREADS)
    assert extra["inserted"] == THREADS
    [told] = pushed.values()
    assert sorted(one["version"] for one in told) == list(range(1, THREADS + 1))
