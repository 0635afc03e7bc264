"""Tasks that find a version for others to read, and that restore one, with an asset event that says so."""

import itertools
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import lance
import pytest
from airflow.sdk.execution_time.context import OutletEventAccessors
from lance_namespace import DescribeTableRequest

from airflow_provider_lancens.assets.table import lance_table
from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.operators.restore_table import LanceRestoreOperator
from airflow_provider_lancens.operators.versions import LanceFindVersionOperator
from tests.integration.airflow.lifecycle import Attempt
from tests.integration.airflow.tables import Table

Restore = Callable[..., tuple[dict[str, Any], dict[str, Any]]]


@pytest.fixture
def flights(table: Table) -> Table:
    """A managed table of three versions, with a row more in each."""
    table.declare(managed_by="impl")
    for _ in range(3):
        table.advance()
    return table


def rows(table: Table) -> int:
    return int(lance.dataset(namespace_client=table.namespace, table_id=table.id).count_rows())


@pytest.fixture
def restore(lake: str, flights: Table) -> Restore:
    """Run the task, each time after a clear; return its XCom and the extra of its asset event."""

    clears = itertools.count()

    def run(run_id: str = "manual__1", **arguments: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        asset, events = lance_table(str(flights), lake), OutletEventAccessors()
        given = {"table": str(flights), "lance_conn_id": lake, "outlets": [asset], **arguments}
        task = LanceRestoreOperator(task_id="restore", **given)
        instance = Attempt()
        instance.max_tries = next(clears)
        context: Any = {"ti": instance, "run_id": run_id, "outlet_events": events}
        answer = task.execute(context)
        return answer, dict(events[asset].extra) if task.outlets else {}

    return run


def test_a_version_is_restored_and_the_event_says_which(restore: Restore, flights: Table) -> None:
    answer, extra = restore(version="1")

    assert answer.pop("seconds") > 0
    counts = {"inserted": 0, "updated": 0, "deleted": 0}
    undone = [{"version": v, "operation": "append", "key": None, **counts} for v in (2, 3)]
    expected = {"table": str(flights), "version": 4, "previous_version": 3, "restored_version": 1}
    assert answer["outcome"] == "done"
    assert answer.items() >= {**expected, **counts}.items()
    assert answer["undone"] == undone
    location = flights.namespace.describe_table(DescribeTableRequest(id=flights.id)).location
    assert extra == {**expected, "operation": "restore", "location": location}
    assert rows(flights) == 1
    assert flights.namespace.describe_table(DescribeTableRequest(id=flights.id)).version == 4


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_version_of_an_xcom_is_not_restored_in_a_table_that_was_declared_again(
    restore: Restore, flights: Table, dry_run: bool
) -> None:
    described = flights.namespace.describe_table(DescribeTableRequest(id=flights.id))
    place = {"version": "2", "location": described.location, "dry_run": dry_run}
    assert restore(**place, run_id="before")[0]["restored_version"] == 2
    flights.drop()
    flights.declare(managed_by="impl")
    for _ in range(3):
        flights.advance()

    with pytest.raises(AirflowFailException, match=r"was dropped and declared again.*its version 2 was"):
        restore(**place)
    assert rows(flights) == 3


def test_a_cleared_task_restores_again_unless_others_have_changed_rows(
    restore: Restore, flights: Table
) -> None:
    first, _ = restore(version=1)
    again, _ = restore(version=1)
    assert (again["version"], again["outcome"]) == (first["version"] + 1, "done")
    flights.advance()

    with pytest.raises(AirflowFailException, match="others have changed rows since, which another one would"):
        restore(version=1)
    assert rows(flights) == 2
    assert restore(version=1, on_existing_key="write_again")[0]["outcome"] == "done"
    assert rows(flights) == 1


def test_a_cleared_task_that_skips_does_not_undo_later_commits(restore: Restore, flights: Table) -> None:
    restore(version=1)
    flights.advance()

    again, event = restore(version=1, on_existing_key="skip")

    assert (again["version"], again["outcome"]) == (4, "skipped")
    assert event == {}  # others have committed since
    assert rows(flights) == 2
    assert restore("manual__2", version=1)[0]["version"] == 6


def test_a_skipped_task_after_which_nothing_was_committed_emits_its_event_again(restore: Restore) -> None:
    first, event = restore(version=1)

    again, same = restore(version=1, on_existing_key="skip")

    assert (again["version"], again["outcome"], same) == (first["version"], "skipped", event)


def test_a_tag_is_restored(restore: Restore, flights: Table) -> None:
    lance.dataset(namespace_client=flights.namespace, table_id=flights.id).tags.create("gold", 2)

    assert restore(version="gold")[0]["restored_version"] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"version": 9}, "has no version 9"),
        ({"version": "silver"}, "no tag 'silver'"),
        ({"version": "2020-01-01T00:00:00+00:00"}, "its oldest version, 1, was committed at"),
        ({"version": "None"}, "version='None': it is empty"),
    ],
)
def test_what_does_not_exist_fails_for_good(
    restore: Restore, flights: Table, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(AirflowFailException, match=message):
        restore(**arguments)
    assert rows(flights) == 3


def test_a_version_is_found_by_time_and_by_tag(lake: str, flights: Table) -> None:
    lance.dataset(namespace_client=flights.namespace, table_id=flights.id).tags.create("gold", 2)

    def find(**how: Any) -> dict[str, Any]:
        task = LanceFindVersionOperator(task_id="find", table=str(flights), lance_conn_id=lake, **how)
        answer: dict[str, Any] = task.execute({})
        return answer

    described = flights.namespace.describe_table({"id": flights.id})
    place = {"table": str(flights), "location": described.location}
    assert find(version=datetime.now(UTC).isoformat()) == {**place, "version": 3}
    assert find(version="gold") == {**place, "version": 2}


@pytest.mark.parametrize("operator", [LanceFindVersionOperator, LanceRestoreOperator])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "version"),
        ({"version": "2026-11-01T25:00:00+00:00"}, "version='2026-.*': expected a number, the name of a tag"),
        ({"version": "2026-11-01T00:00:00"}, "a time with a time zone"),
    ],
)
def test_an_ambiguous_argument_is_an_error_of_the_dag(
    operator: Any, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        operator(task_id="t", table="db$t", **arguments)


def test_a_dry_run_lists_what_would_be_undone_and_emits_no_event(restore: Restore, flights: Table) -> None:
    planned, event = restore(version=1, dry_run=True)
    restored, _ = restore(version=1)

    assert (planned["outcome"], planned["version"], planned["restored_version"], event) == (
        "planned",
        3,
        1,
        {},
    )
    assert (restored["outcome"], restored["version"]) == ("done", 4)
    assert planned["undone"] == restored["undone"]
