"""A task that is moved into a task group and cleared finds what it did, with each operator that has a key."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import lance
import pytest
from lance_namespace import DeclareTableRequest

from airflow_provider_lancens.operators import (
    LanceDeleteOperator,
    LanceReleaseOperator,
    LanceRestoreOperator,
)
from tests.integration.airflow.lifecycle import Attempt
from tests.integration.airflow.tables import Table

MakeTask = Callable[[Table], Any]


def delete(table: Table) -> Any:
    return LanceDeleteOperator(task_id="step", table=str(table), where="n = 1")


def restore(table: Table) -> Any:
    return LanceRestoreOperator(task_id="step", table=str(table), version=1)


def release(table: Table) -> Any:
    daily = [table.id[0], "daily"]
    if "daily" not in table.namespace.list_tables({"id": [table.id[0]]}).tables:
        table.namespace.declare_table(DeclareTableRequest(id=daily))
    return LanceReleaseOperator(task_id="step", release_set="$".join(daily), tables={str(table): 1})


def run(task: Any, task_id: str, clears: int) -> dict[str, Any]:
    instance = Attempt()
    instance.task_id, instance.max_tries = task_id, clears
    dag = SimpleNamespace(has_task=lambda other: other == task_id)
    context: Any = {"ti": instance, "run_id": "manual__1", "task": SimpleNamespace(dag=dag)}
    answer: dict[str, Any] = task.execute(context)
    return answer


@pytest.mark.parametrize("make", [delete, restore, release])
def test_a_task_that_was_moved_into_a_group_does_nothing_again(
    lake: str, table: Table, make: MakeTask
) -> None:
    location = table.declare()
    table.advance()
    table.advance()
    task = make(table)
    task.lance_conn_id, task.on_existing_key = lake, "skip"  # a release always skips
    first = run(task, "step", 0)
    table.advance()
    before = lance.dataset(location).version

    moved, moved_again = run(task, "group.step", 1), run(task, "outer.group.step", 2)

    assert first["outcome"] != "skipped"
    assert (moved["outcome"], moved_again["outcome"]) == ("skipped", "skipped")
    assert moved["version"] == first["version"]
    assert lance.dataset(location).version == before
