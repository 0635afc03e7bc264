"""What a sensor waits for, by its arguments and by an earlier run's result."""

from typing import Any

import pytest

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.hooks.template_args import parse_tables
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.table_status import TableStatus, VersionCondition
from airflow_provider_lancens.sensors.version_bounds import (
    AwaitedVersion,
    commits_in_xcoms,
    read_wanted,
    seen_by_earlier_run,
)

TABLES = [TableId.parse("sales$orders"), TableId.parse("sales$items")]


def wanted(after: Any = None, least: Any = None, **seen: int) -> list[tuple[VersionCondition, int | None]]:
    earlier = [TableStatus(TableId.parse(f"sales${name}"), None, one) for name, one in seen.items()]
    found = read_wanted(TABLES, after, least, lambda: {one.table: one for one in earlier})
    assert [one.table for one in found] == TABLES
    return [(one.condition, one.previous) for one in found]


def test_tables_are_read_once_each() -> None:
    assert parse_tables("Sales$orders") == TABLES[:1]
    assert parse_tables(["sales$orders", "sales$ITEMS", "sales$orders"]) == TABLES


def test_an_empty_list_of_tables_is_refused() -> None:
    with pytest.raises(AirflowFailException, match="is not a table"):
        parse_tables([])


def test_without_a_bound_the_wait_is_for_another_version_than_the_last_run_saw() -> None:
    assert wanted(orders=7) == [(VersionCondition(other_than=7), 7), (VersionCondition(), None)]


def test_a_bound_takes_precedence_over_the_last_seen_version() -> None:
    assert wanted("5", orders=7, items=7) == [(VersionCondition(after_version=5), 5)] * 2
    assert wanted(least=5, orders=7, items=7) == [(VersionCondition(min_version=5), None)] * 2


def test_each_table_can_have_its_own_bound() -> None:
    found = wanted({"Sales$orders": "5"}, {"sales$orders": 9}, orders=7, items=8)
    assert found == [
        (VersionCondition(after_version=5, min_version=9), 5),
        (VersionCondition(other_than=8), 8),
    ]


def test_a_bound_for_another_table_is_refused() -> None:
    with pytest.raises(
        AirflowFailException,
        match=r"min_version: expected tables of the argument table, sales.*, got 'sales\$x'",
    ):
        wanted(least={"sales$x": 1})


@pytest.mark.parametrize("value", ["", "None", {"sales$orders": None}, {"sales$orders": ""}])
@pytest.mark.parametrize("bound", ["after", "least"])
def test_a_bound_that_is_given_and_empty_is_not_a_wait_without_a_bound(bound: str, value: Any) -> None:
    with pytest.raises(AirflowFailException, match=r"_version.*: it is given, but empty; leave it out"):
        wanted(**{bound: value})


@pytest.mark.parametrize("value", [2**63 + 7, str(2**63), {"sales$orders": 2**64 - 1}])
@pytest.mark.parametrize("bound", ["after", "least"])
def test_a_staged_version_is_no_bound(bound: str, value: Any) -> None:
    with pytest.raises(AirflowFailException, match=r"staged version, .* publish it first"):
        wanted(**{bound: value})


def test_only_a_version_that_must_exist_counts_whatever_has_created_it() -> None:
    found = read_wanted(TABLES, None, {"sales$orders": 5}, dict)
    assert [one.is_reached_by_any_commit for one in found] == [True, False]
    both = read_wanted(TABLES, 3, 5, dict)
    assert [one.is_reached_by_any_commit for one in both] == [False, False]


def test_the_last_seen_version_is_not_read_if_a_bound_is_given() -> None:
    def never() -> dict[TableId, TableStatus]:
        raise AssertionError

    read_wanted(TABLES, 1, None, never)


@pytest.mark.parametrize(
    ("xcom", "seen"),
    [
        (None, {}),
        ({"table": "a$b", "version": 3, "location": "/a/b"}, {"a$b": 3}),
        (
            {"a$b": {"table": "a$b", "version": 3}, "a$c": {"table": "a$c", "version": 4}},
            {"a$b": 3, "a$c": 4},
        ),
        (
            {"table": {"table": "table", "version": 3}, "b": {"table": "b", "version": 4}},
            {"table": 3, "b": 4},
        ),
        ("something else", {}),
        ({"other": 1}, {}),
    ],
)
def test_the_last_seen_version_is_read_from_an_earlier_xcom(xcom: Any, seen: dict[str, int]) -> None:
    assert {str(table): one.version for table, one in seen_by_earlier_run(xcom).items()} == seen


@pytest.mark.parametrize(
    ("condition", "version", "since"),
    [
        (VersionCondition(), 3, 0),
        (VersionCondition(after_version=2), 3, 2),
        (VersionCondition(min_version=3), 3, 2),
        (VersionCondition(other_than=2), 3, 2),
        (VersionCondition(other_than=9), 3, 0),
    ],
)
def test_data_counts_as_new_after_the_last_known_version(
    condition: VersionCondition, version: int, since: int
) -> None:
    table = TableId.parse("a$b")
    seen = TableStatus(table, "/a/b", version)
    assert AwaitedVersion(table, condition, None).data_since(seen) == since


def test_a_version_that_an_upstream_task_committed_ends_a_wait_that_an_earlier_run_has_seen() -> None:
    table = TableId.parse("sales$orders")
    earlier = TableStatus(table, None, 4)
    [awaited] = read_wanted([table], None, None, lambda: {table: earlier}, lambda: made(table, 4))

    assert awaited.condition == VersionCondition(min_version=4)
    assert awaited.condition.holds(TableStatus(table, "/lake", 4))
    assert awaited.previous == 4


@pytest.mark.parametrize(("version", "previous"), [(3, 4), (4, None), (9, None)])
@pytest.mark.parametrize("upstream", [None, "", "/lake/new"])
def test_a_table_that_was_created_again_elsewhere_does_not_continue_the_versions_of_an_earlier_run(
    version: int, previous: int | None, upstream: str | None
) -> None:
    xcom = {"table": "sales$orders", "version": 4, "previous_version": 3, "location": "/lake/old"}
    table, now = TABLES[0], TableStatus(TABLES[0], "/lake/new", version)
    [awaited] = read_wanted(
        [table],
        None,
        None,
        lambda: seen_by_earlier_run(xcom),
        lambda: {} if upstream is None else made(table, 3, upstream),
    )
    found = awaited.seen_at(now)

    assert found.condition.holds(now)
    assert found.result(now)["previous_version"] == previous
    assert found.data_since(now) == (0 if upstream is None else 2)
    assert found.seen_at(now) == found
    dropped, same = TableStatus(table), TableStatus(table, "/lake/old", 4)
    assert awaited.seen_at(dropped) == awaited
    assert awaited.after(dropped).holds(now)  # in the triggerer
    assert awaited.seen_at(same).condition.holds(same) == (upstream == "")


def made(table: TableId, version: int, location: str = "") -> dict[TableId, list[TableStatus]]:
    """What tasks upstream have committed to a table."""
    return {table: [TableStatus(table, location or None, version)]}


def test_a_version_that_was_committed_upstream_to_a_table_at_another_location_ends_no_wait() -> None:
    table, seen = TABLES[0], TableStatus(TABLES[0], "/lake/here", 7)
    later = TableStatus(table, "/lake/here", 8)
    both = [*made(table, 3, "/lake/there")[table], TableStatus(table, "/lake/here", 8)]
    [awaited] = read_wanted([table], None, None, lambda: {table: seen}, lambda: {table: both[:1]})
    [of_both] = read_wanted([table], None, None, lambda: {table: seen}, lambda: {table: both})

    assert not awaited.seen_at(seen).condition.holds(seen)
    assert awaited.seen_at(later).condition.holds(later)
    assert awaited.seen_at(later).result(later)["previous_version"] == 7
    assert of_both.seen_at(later).condition == VersionCondition(min_version=8)
    assert not of_both.seen_at(seen).condition.holds(seen)
    for one in (awaited, of_both):
        assert one.seen_at(later).seen_at(later) == one.seen_at(later)
        unreachable = TableStatus(table, "/lake/here", 0)
        assert one.seen_at(unreachable).after(unreachable) == VersionCondition()


def test_a_version_that_was_committed_upstream_to_another_table_of_the_name_is_not_waited_for() -> None:
    table = TableId.parse("sales$orders")
    earlier = TableStatus(table, None, 4)
    [awaited] = read_wanted([table], None, None, lambda: {table: earlier}, lambda: made(table, 100))
    unreachable, before, after = (TableStatus(table, "/lake", version) for version in (0, 4, 5))

    assert awaited.seen_at(TableStatus(table, "/lake", 100)) == awaited
    assert not awaited.seen_at(before).condition.holds(before)
    assert awaited.seen_at(after).condition.holds(after)
    assert awaited.seen_at(after).result(after)["previous_version"] == 4
    # Until the table is reached, whose version it is isn't known: the task polls again at any version.
    assert awaited.seen_at(unreachable).after(unreachable) == VersionCondition()


def test_versions_of_upstream_tasks_are_those_that_they_wrote() -> None:
    written = {"table": "a$b", "version": 3, "previous_version": 2, "outcome": "done"}
    mapped = [[{**written, "version": 5, "outcome": "skipped"}], None, "text", {"x": 1}]
    nothing = {"table": "a$c", "version": 7, "previous_version": 7, "outcome": "unchanged"}
    staged = {**written, "version": None, "outcome": "staged", "staged_version": f"staged-{2**63}"}
    waited = {"table": "a$d", "version": 9, "previous_version": 8, "location": "/x"}

    placed = [{**written, "version": version, "location": "/y"} for version in (4, 8, 6)]

    table = TableId.parse("a$b")
    assert commits_in_xcoms([written, *mapped, nothing, staged, waited]) == made(table, 5)
    both = commits_in_xcoms([placed, mapped])[table]
    assert {(status.location, status.version) for status in both} == {("/y", 8), (None, 5)}


@pytest.mark.parametrize(
    ("previous", "outcome", "is_made"),
    [
        (2, "done", True),
        (2, "found", True),
        (3, "done", False),
        (3, "unchanged", False),
        (2, "planned", False),
    ],
)
def test_versions_that_upstream_tasks_maintained_are_theirs(
    previous: int, outcome: str, is_made: bool
) -> None:
    xcom = {"table": "a$b", "version": 3, "previous_version": previous, "outcome": outcome}

    assert commits_in_xcoms([xcom]) == (made(TableId.parse("a$b"), 3) if is_made else {})


@pytest.mark.parametrize("table", [{}, {"table": None}, {"table": ["a$b"]}, {"table": "a$$b"}])
def test_xcoms_of_other_operators_with_the_same_keys_are_left_out(table: dict[str, Any]) -> None:
    assert commits_in_xcoms([{**table, "outcome": "done", "version": 3}]) == {}
