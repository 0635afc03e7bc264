"""What people do in a running Airflow with tasks that write, and the rows after each of it."""

from collections import Counter
from pathlib import Path
from typing import Any

import lance
import pytest

from tests.e2e.running.conftest import Lake
from tests.e2e.servers import RunningAirflow, run_path
from tests.integration.airflow.tables import Table

MAPPED, RELOADED = "mapped_gestures", "reloaded_gestures"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def rows(table: Table) -> dict[str, int]:
    """The number of rows of each item."""
    found = lance.dataset(namespace_client=table.namespace, table_id=table.id).to_table()
    return dict(Counter(found["item"].to_pylist()))


def declared(lake: Lake, name: str) -> Table:
    table = lake.table(name)
    table.declare()
    return table


def ended(airflow: RunningAirflow, dag_id: str, run_id: str) -> str:
    return airflow.until(lambda: airflow.ended(dag_id, run_id), patience=900)


def clear(airflow: RunningAirflow, dag_id: str, run_id: str, *task_ids: str) -> str:
    """Clear tasks with what is downstream of them, and return the run's state at its end."""
    body = {"dag_run_id": run_id, "task_ids": task_ids, "only_failed": False, "dry_run": False}
    airflow.send("POST", f"/api/v2/dags/{dag_id}/clearTaskInstances", {**body, "include_downstream": True})
    return ended(airflow, dag_id, run_id)


def mark(airflow: RunningAirflow, dag_id: str, run_id: str, task_id: str, state: str) -> None:
    path = f"{run_path(dag_id, run_id)}/taskInstances/{task_id}"
    airflow.send("PATCH", path, {"new_state": state})


def test_a_list_that_grows_in_front_neither_skips_nor_doubles_when_its_run_is_cleared(
    airflow: RunningAirflow, lake: Lake, tmp_path: Path
) -> None:
    table, listed = declared(lake, "listed"), tmp_path / "list"
    listed.write_text("a b")
    run_id = airflow.trigger_run(MAPPED, table=str(table), list=str(listed))
    assert ended(airflow, MAPPED, run_id) == "success"
    assert rows(table) == {"a": 10, "b": 10}

    listed.write_text("new b a")
    assert clear(airflow, MAPPED, run_id, "items") == "success"
    assert rows(table) == {"a": 10, "b": 10, "new": 10}


def test_a_day_is_reloaded_by_a_clear_and_an_ingestion_marked_as_success_leaves_no_wait(
    airflow: RunningAirflow, lake: Lake, tmp_path: Path
) -> None:
    table, file = declared(lake, "reloaded"), tmp_path / "count"
    file.write_text("10")
    run_id = airflow.trigger_run(RELOADED, table=str(table), file=str(file))
    assert ended(airflow, RELOADED, run_id) == "success"
    assert rows(table) == {"day": 10}

    file.write_text("7")
    assert clear(airflow, RELOADED, run_id, "load") == "success"
    assert rows(table) == {"day": 7}
    waited: Any = airflow.xcom(RELOADED, run_id, "wait")

    # The sensor and its readers alone: it ends at once, with the version that is there.
    assert clear(airflow, RELOADED, run_id, "wait") == "success"
    assert airflow.xcom(RELOADED, run_id, "wait") == waited
    assert rows(table) == {"day": 7}

    file.unlink()
    other = airflow.trigger_run(RELOADED, "2026-01-05T00:00:00Z", table=str(table), file=str(file))
    assert ended(airflow, RELOADED, other) == "failed"
    mark(airflow, RELOADED, other, "load", "success")
    assert clear(airflow, RELOADED, other, "wait") == "failed"
    logs = airflow.task_logs.glob(f"dag_id={RELOADED}/run_id={other}/task_id=wait/*.log")
    assert any("or by another task, but came out empty" in log.read_text() for log in logs)
    assert rows(table) == {"day": 7}
