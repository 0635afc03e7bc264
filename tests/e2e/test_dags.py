"""DAGs run by Airflow itself, on a real metastore."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pytest

from tests.integration.airflow.tables import Table

Start = Callable[..., Any]

# Each change runs the examples, and the operators and the sensor as a worker does.
pytestmark = pytest.mark.long


def test_waits_in_every_mode_see_a_version_committed_meanwhile(start: Start, lake: str, table: Table) -> None:
    run = start("waits", table=str(table), lance_conn_id=lake)
    run.wait_for("does not exist; waiting for any version")
    location = table.declare()
    table.advance()
    for version in (1, 2, 3):
        run.wait_for(f"waiting for a version greater than {version}")
        table.advance()

    tasks = run.result()

    assert {task["state"] for task in tasks.values()} == {"success"}
    assert [tasks[task_id]["xcom"] for task_id in ("missing", "poke", "reschedule", "deferrable")] == [
        {"table": str(table), "version": version, "previous_version": previous, "location": location}
        for previous, version in ((None, 1), (1, 2), (2, 3), (3, 4))
    ]
    assert "running trigger in line" in run.log


def test_waits_without_a_version_fail_or_skip_as_configured(start: Start, lake: str, table: Table) -> None:
    run = start("endings", table=str(table), lance_conn_id=lake)

    tasks = run.result()

    assert {task_id: task["state"] for task_id, task in tasks.items()} == {
        "poke_times_out": "failed",
        "reschedule_times_out": "failed",
        "poke_is_skipped": "skipped",
        "reschedule_is_skipped": "skipped",
        "poke_is_impossible": "failed",
        "deferrable_is_impossible": "failed",
        "deferrable_is_impossible_and_skipped": "skipped",
    }


def test_namespaces_and_tables_are_created_and_dropped_once(
    start: Start, lake: str, database: str, tmp_path: Any
) -> None:
    tasks = start("tables", database=database, lance_conn_id=lake).result()

    table, location = f"{database}$orders", tasks["declare"]["xcom"]["location"]
    assert Path(location).is_relative_to(tmp_path / f"{database}.db-lance")
    of_table = {"table": table}
    assert {task_id: task["xcom"] for task_id, task in tasks.items()} == {
        "create": {"namespace": database, "operation": "create_namespace", "outcome": "done"},
        "create_again": {"namespace": database, "operation": "create_namespace", "outcome": "unchanged"},
        "declare": {**of_table, "operation": "declare_table", "location": location, "outcome": "done"},
        "declare_again": {
            **of_table,
            "operation": "declare_table",
            "location": location,
            "outcome": "unchanged",
        },
        "deregister": {**of_table, "operation": "deregister_table", "location": location, "outcome": "done"},
        "deregister_again": {
            **of_table,
            "operation": "deregister_table",
            "location": None,
            "outcome": "unchanged",
        },
        "drop": {"namespace": database, "operation": "drop_namespace", "outcome": "done"},
        "drop_again": {"namespace": database, "operation": "drop_namespace", "outcome": "unchanged"},
    }


def test_each_run_and_each_cleared_run_starts_from_the_previous_run(
    start: Start, lake: str, table: Table
) -> None:
    location = table.declare()

    def versions(day: str) -> list[tuple[int, int | None]]:
        run = start("since", table=str(table), lance_conn_id=lake, logical_date=day)
        tasks = run.result()
        assert {task["state"] for task in tasks.values()} == {"success"}, run.log
        found = [tasks[task_id]["xcom"] for task_id in ("wait", "mapped")]
        return [(xcom["version"], xcom["previous_version"]) for xcom in found]

    table.advance()
    assert versions("2026-01-01T00:00:00Z") == [(1, None)] * 2
    table.advance()
    assert versions("2026-01-03T00:00:00Z") == [(2, 1)] * 2
    table.advance()
    assert versions("2026-01-03T00:00:00Z") == [(3, 1)] * 2  # again, as a cleared run
    assert versions("2026-01-02T00:00:00Z") == [(3, 1)] * 2  # a backfill doesn't see later runs
    assert not lance.dataset(location).tags.list()
