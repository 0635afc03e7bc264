"""Runs of one DAG by Airflow itself: a wait with no bound goes on from the run before it, by logical date."""

from collections.abc import Callable
from typing import Any

import lance
import pytest

from tests.integration.airflow.tables import Table

pytestmark = pytest.mark.slow


def test_each_run_starts_from_the_run_before_it_and_a_cleared_one_does_so_again(
    start: Callable[..., Any], lake: str, table: Table
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
    assert versions("2026-01-03T00:00:00Z") == [(3, 1)] * 2  # once more, as a cleared run
    assert versions("2026-01-02T00:00:00Z") == [(3, 1)] * 2  # a backfill knows nothing of later runs
    assert not lance.dataset(location).tags.list()
