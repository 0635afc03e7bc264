"""Rows deleted by a task: once per data interval or run, despite writes in between, with an asset event."""

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import lance
import pyarrow as pa
import pytest
from airflow.sdk.execution_time.context import OutletEventAccessors
from lance_namespace import DescribeTableRequest

from airflow_provider_lancens.assets.table import lance_table
from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.operators.delete_rows import LanceDeleteOperator
from tests.integration.airflow.lifecycle import Attempt
from tests.integration.airflow.tables import Table

Delete = Callable[..., dict[str, Any]]


@pytest.fixture
def orders(table: Table) -> Table:
    """A managed table of the numbers 1 to 4 in two fragments."""
    table.declare(managed_by="impl")
    append(table, 1, 2)
    append(table, 3, 4)
    return table


def append(table: Table, *numbers: int) -> None:
    rows = pa.table({"n": pa.array(numbers, pa.int64())})
    lance.write_dataset(rows, namespace_client=table.namespace, table_id=table.id, mode="append")


def numbers(table: Table) -> list[int]:
    rows = lance.dataset(namespace_client=table.namespace, table_id=table.id).to_table()
    return sorted(rows["n"].to_pylist())


@pytest.fixture
def delete(lake: str, orders: Table) -> Delete:
    """Run the task in a DAG run, each time after a clear; return its XCom."""
    clears = itertools.count()

    def run(where: str, run_id: str = "manual__1", **arguments: Any) -> dict[str, Any]:
        asset, events = lance_table(str(orders), lake), OutletEventAccessors()
        given = {"table": str(orders), "lance_conn_id": lake, "outlets": [asset], **arguments}
        task = LanceDeleteOperator(task_id="delete", where=where, **given)
        instance = Attempt()
        instance.max_tries = next(clears)
        context: Any = {"ti": instance, "run_id": run_id, "outlet_events": events}
        answer = task.execute(context)
        assert not (task.outlets and arguments.get("dry_run"))
        if task.outlets:  # a skipped deletion emits no event if others have committed since
            keys = ("table", "operation", "previous_version", "version", "inserted", "updated", "deleted")
            extra = dict(events[asset].extra)
            assert extra.pop("location").endswith(".lance")
            assert extra == {key: answer[key] for key in keys}
        return answer

    return run


def test_matching_rows_are_deleted_and_the_metastore_has_the_new_version(
    delete: Delete, orders: Table
) -> None:
    answer = delete("n >= 2 AND n < 4")

    described = orders.namespace.describe_table(DescribeTableRequest(id=orders.id))
    assert answer.pop("seconds") > 0
    assert answer == {
        "table": str(orders),
        "operation": "delete",
        "outcome": "done",
        "version": 3,
        "previous_version": 2,
        "inserted": 0,
        "updated": 0,
        "deleted": 2,
        "files": 2,
        "bytes": 0,
        "key": "dag/wait/manual__1",
        "staged_version": None,
        "reason": "",
        "location": described.location,
    }
    assert numbers(orders) == [1, 4]
    assert described.version == 3


def test_a_cleared_task_deletes_what_matches_now(delete: Delete, orders: Table) -> None:
    delete("n = 1")
    append(orders, 1)

    again = delete("n = 1")

    assert (again["version"], again["deleted"], again["outcome"]) == (5, 1, "done")
    assert numbers(orders) == [2, 3, 4]


def test_a_cleared_task_that_skips_deletes_no_rows_written_since(delete: Delete, orders: Table) -> None:
    delete = partial(delete, on_existing_key="skip")
    delete("n = 1")
    append(orders, 1)

    again, in_another_run = delete("n = 1"), delete("n = 1", run_id="manual__2")

    assert (again["version"], again["deleted"], again["outcome"]) == (3, 1, "skipped")
    assert (in_another_run["version"], in_another_run["outcome"]) == (5, "done")
    assert numbers(orders) == [2, 3, 4]


def test_a_task_that_skips_fails_for_good_if_its_condition_was_changed(delete: Delete, orders: Table) -> None:
    delete("n = 1")

    with pytest.raises(AirflowFailException, match=r"version 3 was committed under .*dag/wait/manual__1"):
        delete("n = 2", on_existing_key="skip")
    assert numbers(orders) == [2, 3, 4]


@pytest.mark.parametrize(("policy", "expected"), [("skip", [3, 3]), ("redo", [3, 4])])
def test_runs_with_the_same_explicit_key_are_one_deletion_if_they_skip(
    delete: Delete, policy: str, expected: list[int]
) -> None:
    given = {"key": "order 1", "on_existing_key": policy}

    assert [delete("n = 1", run_id, **given)["version"] for run_id in ("a", "b")] == expected


@pytest.mark.parametrize(
    ("where", "message"), [("m = 1", "no column 'm'"), ("n =", "incomplete"), (" ", "where: .*blank")]
)
def test_an_invalid_condition_fails_without_retry(
    delete: Delete, orders: Table, where: str, message: str
) -> None:
    with pytest.raises(
        AirflowFailException, match=f"deleting rows of table '{orders.database}.orders'.*{message}"
    ):
        delete(where)
    assert numbers(orders) == [1, 2, 3, 4]


def test_a_table_that_is_not_declared_fails_for_good(delete: Delete, database: str) -> None:
    with pytest.raises(AirflowFailException, match="TABLE_NOT_FOUND"):
        delete("n = 1", table=f"{database}$nowhere")


def test_a_dry_run_counts_the_rows_and_emits_no_event(delete: Delete, orders: Table) -> None:
    planned = delete("n > 1", dry_run=True)
    deleted = delete("n > 1")

    assert (planned["outcome"], planned["version"], planned["deleted"], planned["files"]) == (
        "planned",
        2,
        3,
        2,
    )
    assert (deleted["outcome"], deleted["version"], deleted["deleted"]) == ("done", 3, 3)
    assert planned["key"] == deleted["key"]
