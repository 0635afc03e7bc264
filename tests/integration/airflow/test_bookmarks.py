"""Bookmarks as tasks use them, on tables of both version authorities."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import lance
import pytest
from lance_namespace import DeclareTableRequest, DropTableRequest, LanceNamespace

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException, AirflowSkipException
from airflow_provider_lancens.hooks.lance_hook import LanceHook
from airflow_provider_lancens.operators import (
    LanceCleanUpVersionsOperator,
    LanceDeleteTagOperator,
    LanceFindChangesOperator,
    LanceMaintainOperator,
    LanceTagOperator,
)
from airflow_provider_lancens.sensors import LanceTableVersionSensor
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable
from airflow_provider_lancens.ui.version_history import list_versions
from tests.integration.airflow.tables import Table
from tests.support.bookmarks import list_bookmarks

Run = Callable[..., Any]

AT_ONCE = timedelta(milliseconds=1)
NOW = timedelta(0)


@pytest.fixture(params=["storage", "impl"])
def orders(request: pytest.FixtureRequest, table: Table, run: Run) -> Table:
    """A table of three versions, of which a consumer has read the first."""
    table.declare(managed_by=request.param)
    for _ in range(3):
        table.advance()
    run(LanceTagOperator, table=str(table), version=1, tag="revenue", expires_after=AT_ONCE)
    time.sleep(0.05)
    return table


@pytest.fixture
def hook(lake: str) -> LanceHook:
    """The hook that the operators use."""
    return LanceHook.for_connection(lake)


def test_the_consumer_of_an_expired_bookmark_fails_once_with_advice(
    run: Run, orders: Table, hook: LanceHook
) -> None:
    find = {"table": str(orders), "bookmark": "revenue"}
    assert run(LanceFindChangesOperator, **find)["previous_version"] == 1  # its version is still there

    cleaned = run(LanceCleanUpVersionsOperator, table=str(orders), older_than=NOW)

    assert (cleaned["versions"], cleaned["kept_by_tag"], cleaned["expired_bookmarks"]) == (2, 0, ["revenue"])
    message = (
        rf"table {orders.database}\$orders: bookmark 'revenue' has expired: it was at version 1, last "
        r"moved at 20.*, and a clean-up at 20.* if_unavailable='read_all'.* move the bookmark"
    )
    with pytest.raises(AirflowFailException, match=message):
        run(LanceFindChangesOperator, **find)
    found = run(LanceFindChangesOperator, **find, if_unavailable="read_all")
    assert found == {
        "table": str(orders),
        "previous_version": None,
        "version": 3,
        "location": hook.table(str(orders)).location,
    }

    run(LanceTagOperator, table=str(orders), version=3, tag="revenue")
    orders.advance()
    assert run(LanceFindChangesOperator, **find)["previous_version"] == 3
    assert run(LanceCleanUpVersionsOperator, table=str(orders), older_than=NOW)["expired_bookmarks"] == []


def test_a_bookmark_does_not_pass_over_rows_of_a_table_that_was_declared_again(
    run: Run, orders: Table, namespace: LanceNamespace
) -> None:
    find = {"table": str(orders), "bookmark": "revenue"}
    found = run(LanceFindChangesOperator, **find)
    namespace.drop_table(DropTableRequest(id=orders.id))
    namespace.declare_table(DeclareTableRequest(id=orders.id))
    for _ in range(4):
        orders.advance()

    move = {"table": str(orders), "tag": "revenue", "version": found["version"]}
    with pytest.raises(AirflowFailException, match=r"was dropped and declared again.*version 3 was returned"):
        run(LanceTagOperator, **move, location=found["location"])

    again = run(LanceFindChangesOperator, **find)
    assert (again["previous_version"], again["version"]) == (None, 4)
    run(LanceTagOperator, **move, location=again["location"])


def test_changes_of_a_table_that_does_not_exist_fail_rather_than_skip_what_follows(
    run: Run, table: Table
) -> None:
    with pytest.raises(AirflowFailException, match=r"TABLE_NOT_FOUND.*declare the table first"):
        run(LanceFindChangesOperator, table=str(table), bookmark="revenue")
    table.declare()
    with pytest.raises(AirflowSkipException, match="has no version yet"):
        run(LanceFindChangesOperator, table=str(table), bookmark="revenue")


def test_deleting_an_expired_bookmark_resets_its_consumer(run: Run, orders: Table) -> None:
    run(LanceCleanUpVersionsOperator, table=str(orders), older_than=NOW)
    tag = {"table": str(orders), "tag": "revenue"}

    assert run(LanceDeleteTagOperator, **tag)["outcome"] == "done"
    assert run(LanceDeleteTagOperator, **tag, if_missing="skip")["outcome"] == "unchanged"
    found = run(LanceFindChangesOperator, table=str(orders), bookmark="revenue")
    assert found["previous_version"] is None


def test_a_bookmark_that_was_moved_meanwhile_leaves_nothing_to_read(
    run: Run, orders: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(LanceTagOperator, table=str(orders), version=3, tag="revenue")
    opens, open_latest = iter([2]), ResolvedTable.open_latest
    monkeypatch.setattr(
        ResolvedTable,
        "open_latest",
        lambda table: open_latest(table) if (old := next(opens, None)) is None else table.open(old),
    )

    with pytest.raises(AirflowSkipException, match="has no version after 3, its bookmark's"):
        run(LanceFindChangesOperator, table=str(orders), bookmark="revenue")


def test_a_staged_version_is_no_bookmark(run: Run, orders: Table) -> None:
    with pytest.raises(AirflowFailException, match=r"is the number of a staged version.*publish it first"):
        run(LanceTagOperator, table=str(orders), version=2**63 + 5, tag="revenue")


def test_maintenance_expires_bookmarks_when_it_cleans_up(run: Run, orders: Table) -> None:
    maintain = {"table": str(orders), "older_than": NOW, "min_small_fragments": 100}

    kept = run(LanceMaintainOperator, **maintain, min_removable_versions=3)
    done = run(LanceMaintainOperator, **maintain, min_removable_versions=2)

    assert kept["steps"]["expire"]["outcome"] == "unchanged"
    assert done["steps"]["expire"]["expired_bookmarks"] == ["revenue"]


def test_a_pin_of_a_sensor_is_not_listed(run: Run, orders: Table, namespace: LanceNamespace) -> None:
    pinned = run(LanceTableVersionSensor, table=str(orders), pin=True)

    data = lance.dataset(namespace_client=namespace, table_id=orders.id)
    assert data.tags.list().keys() == {"revenue", pinned["tag"]}
    assert [bookmark.name for bookmark in list_bookmarks(namespace, str(orders))] == ["revenue"]


def test_the_lance_page_shows_when_bookmarks_expire_and_which_have(
    hook: LanceHook, run: Run, orders: Table
) -> None:
    given = {"table": str(orders)}
    run(LanceTagOperator, **given, version=2, tag="report")
    run(LanceTagOperator, **given, version=2, tag="slow", expires_after=timedelta(days=3))
    [late, slow] = [one for one in list_bookmarks(hook.get_conn(), str(orders)) if one.expires_at]
    assert late.expires_at is not None
    assert slow.expires_at is not None

    before = list_versions(hook, str(orders), None, 10)
    run(LanceCleanUpVersionsOperator, **given, older_than=NOW)
    after = list_versions(hook, str(orders), None, 10)

    assert {entry["version"]: entry["bookmarks"] for entry in before["versions"]} == {
        3: {},
        2: {"report": None, "slow": slow.expires_at.isoformat()},
        1: {"revenue": late.expires_at.isoformat()},
    }
    [expired] = after["expired"]
    assert (before["expired"], expired["name"], expired["version"]) == ([], "revenue", 1)
    assert expired["expired"].endswith("+00:00")
    assert [entry["version"] for entry in after["versions"]] == [3, 2]
