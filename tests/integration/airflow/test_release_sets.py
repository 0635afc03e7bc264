"""Tasks that release versions of several tables: once, with an event unless there is a newer release."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.execution_time.context import OutletEventAccessors
from lance_namespace import DeclareTableRequest, DescribeTableRequest

from airflow_provider_lancens.assets.table import lance_table
from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.links import LancePageLink, table_page_url
from airflow_provider_lancens.operators.release_sets import LanceFindReleaseOperator, LanceReleaseOperator
from tests.integration.airflow.folder_tables import Folder
from tests.integration.airflow.lifecycle import Attempt
from tests.integration.airflow.tables import Table

Release = Callable[..., tuple[dict[str, Any], dict[str, Any]]]


@pytest.fixture
def release(lake: str, table: Table) -> Release:
    """Release a version of the table, in a run; return the XCom and the extra of the asset event."""
    table.declare()
    for _ in range(2):
        table.advance()
    daily = [table.id[0], "daily"]
    table.namespace.declare_table(DeclareTableRequest(id=daily))
    clears = itertools.count()

    def run(run_id: str, version: int, clear: int | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        asset, events = lance_table("$".join(daily), lake), OutletEventAccessors()
        task = LanceReleaseOperator(
            task_id="release",
            release_set="$".join(daily),
            tables={str(table): version},
            lance_conn_id=lake,
            outlets=[asset],
        )
        instance = Attempt()
        instance.max_tries = next(clears) if clear is None else clear
        context: Any = {"ti": instance, "run_id": run_id, "outlet_events": events}
        answer = task.execute(context)
        return answer, dict(events[asset].extra) if task.outlets else {}

    return run


def test_a_release_is_made_once_and_a_cleared_task_says_that_it_is_skipped(
    release: Release, table: Table
) -> None:
    first, event = release("monday", 1)

    again, same = release("monday", 1)

    expected = {"version": 1, "previous_version": None, "tables": {str(table): 1}}
    assert {name: first[name] for name in expected} == expected
    assert event.pop("location").endswith(f"/{first['table'].partition('$')[2]}.lance")
    assert event == {"table": first["table"], "operation": "release", **expected}
    assert first["outcome"] == "done"
    assert again == {**first, "outcome": "skipped", "seconds": again["seconds"]}
    assert same.pop("location")
    assert same == event


def test_a_cleared_release_emits_no_event_after_a_newer_one(
    release: Release, caplog: pytest.LogCaptureFixture
) -> None:
    release("monday", 1)
    release("tuesday", 2)

    again, event = release("monday", 1)

    assert (again["version"], again["outcome"], event) == (1, "skipped", {})
    assert "release set" in caplog.text
    assert "at version 2 now" in caplog.text
    assert "on_existing_key" not in caplog.text


def test_a_retry_emits_the_event_of_the_release_that_an_earlier_try_made(release: Release) -> None:
    _, event = release("monday", 1, clear=5)
    release("tuesday", 2)

    again, same = release("monday", 1, clear=5)

    assert (again["outcome"], same) == ("found", event)


def test_a_release_is_found_as_a_table_at_a_version_with_its_tables(
    release: Release, table: Table, lake: str
) -> None:
    made, _ = release("monday", 1)
    release("tuesday", 2)
    location = table.namespace.describe_table(DescribeTableRequest(id=table.id)).location

    for wanted, version in ((made, 1), (made["table"], 2)):
        find = LanceFindReleaseOperator(task_id="find", release_set=wanted, lance_conn_id=lake)
        found = find.execute({"ti": Attempt()})  # type: ignore[typeddict-item]
        own = {"table": made["table"], "version": version, "location": made["location"]}
        member = {"table": str(table), "version": version, "location": location}
        assert found == {**own, str(table): member}
        assert LancePageLink().page(find.hook, found) == table_page_url(lake, made["table"], version)


def test_a_table_named_as_a_field_of_the_xcom_is_refused(connect: Callable[..., str], tmp_path: Path) -> None:
    folder = Folder(connect, tmp_path)
    folder.create("version", versions=2)
    folder.create("release")
    folder.catalog.release_set("release").release({"version": 2}, key="monday")
    find = LanceFindReleaseOperator(task_id="find", release_set="release", lance_conn_id=folder.conn_id)

    with pytest.raises(AirflowFailException, match=r"it has a table named 'version'.* rename the table"):
        find.execute({"ti": Attempt()})  # type: ignore[typeddict-item]
