"""One record of new versions for a run that asset events have started."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.definitions.asset import AssetUniqueKey

from airflow_provider_lancens.assets.event_records import new_versions
from airflow_provider_lancens.assets.table import lance_table
from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException

ORDERS, ITEMS = (
    AssetUniqueKey.from_asset(lance_table(table, "lake")) for table in ("shop$orders", "shop$items")
)


FIRST, SECOND = (f"/lake/shop.db-lance/orders-{number * 12}/orders.lance" for number in "12")
"""The locations of two declarations of the table."""


def advance(previous: int | None, version: int, *, watched: bool = False, **more: Any) -> Any:
    record = {"table": "shop$orders", "previous_version": previous, "version": version, **more}
    return SimpleNamespace(extra={"payload": record} if watched else record)


def of_orders(*events: Any) -> Any:
    return new_versions({ORDERS: list(events)}).get("shop$orders")


def test_events_of_tasks_and_of_watched_tables_give_the_same_record() -> None:
    record = {"table": "shop$orders", "previous_version": 3, "version": 4}
    assert of_orders(advance(3, 4, rows=1)) == of_orders(advance(3, 4, watched=True)) == record


def test_several_events_are_one_record_from_the_oldest_to_the_newest_version() -> None:
    found = of_orders(advance(4, 6, watched=True), advance(2, 4), advance(2, 4), advance(6, 7))
    assert (found["previous_version"], found["version"]) == (2, 7)


def test_an_event_of_several_writes_that_others_committed_between_begins_with_the_first_of_them() -> None:
    of_one_task, of_another_task = advance(2, 7), advance(4, 5)
    for events in ((of_another_task, of_one_task), (of_one_task, of_another_task)):
        found = of_orders(*events)
        assert (found["previous_version"], found["version"]) == (2, 7)


def test_each_table_has_its_own_record_by_its_identifier() -> None:
    items = SimpleNamespace(extra={"table": "shop$items", "previous_version": None, "version": 1})
    found = new_versions({ORDERS: [advance(1, 2)], ITEMS: [items]})
    assert {table: record["version"] for table, record in found.items()} == {
        "shop$orders": 2,
        "shop$items": 1,
    }


def test_tables_of_one_name_with_two_authorities_are_refused_rather_than_merged() -> None:
    asset_of = {name: lance_table("shop$orders", name) for name in ("eu", "us")}
    of_eu, of_us = advance(3, 4), advance(10, 11)
    of_eu.asset, of_us.asset = asset_of.values()
    events = {AssetUniqueKey.from_asset(asset_of["eu"]): [of_eu], asset_of["us"].name: [of_us]}

    with pytest.raises(AirflowFailException, match="lance://eu/shop/orders and lance://us/shop/orders"):
        new_versions(events)

    for name, version in (("eu", 4), ("us", 11)):
        one_asset = {key: found for key, found in events.items() if found[0].asset is asset_of[name]}
        assert new_versions(one_asset)["shop$orders"]["version"] == version


def test_a_table_that_was_created_again_starts_over() -> None:
    found = of_orders(
        advance(7, 8, watched=True), advance(None, 1, watched=True), advance(1, 2, watched=True)
    )
    assert (found["previous_version"], found["version"]) == (None, 2)


@pytest.mark.parametrize(("run_id", "expected"), [("monday", (None, 3)), ("tuesday", (None, 1))])
def test_the_first_write_of_a_table_may_end_after_the_other_writes_of_its_run(
    run_id: str, expected: tuple[None, int]
) -> None:
    events = [advance(1, 2), advance(2, 3), advance(None, 1)]
    for event, its in zip(events, ("monday", "sunday", run_id), strict=True):
        event.source_dag_id, event.source_run_id = "load", its

    found = of_orders(*events)

    assert (found["previous_version"], found["version"]) == expected


@pytest.mark.parametrize(
    ("location", "expected"),
    [(FIRST, (None, 3)), ("/data/orders.lance", (None, 1))],  # which a later declaration may be given again
)
def test_the_first_write_of_a_table_may_end_after_the_writes_of_other_runs(
    location: str, expected: tuple[None, int]
) -> None:
    events = [advance(*versions, location=location) for versions in ((1, 2), (2, 3), (None, 1))]
    for event, run_id in zip(events, ("monday", "sunday", "tuesday"), strict=True):
        event.source_dag_id, event.source_run_id = "load", run_id

    found = of_orders(*events)

    assert (found["previous_version"], found["version"]) == expected
    assert found["location"] == location


def test_a_table_at_another_location_is_read_from_its_first_row() -> None:
    of_former_table = advance(7, 8, location=FIRST)
    of_declared_columns = advance(1, 2, location=SECOND)  # they were version 1, which has no event
    for more, version in (((), 2), ((advance(2, 12, location=SECOND),), 12)):
        found = of_orders(of_former_table, of_declared_columns, *more)
        assert (found["previous_version"], found["version"]) == (None, version)


def test_a_watched_table_at_another_location_with_the_same_version_is_read_from_its_first_row() -> None:
    for location, previous in ((SECOND, None), (FIRST, 3)):
        again = advance(None, 4, watched=True, location=location)
        found = of_orders(advance(3, 4, watched=True, location=FIRST), again)
        assert (found["previous_version"], found["version"]) == (previous, 4)


def test_a_smaller_version_of_a_watched_table_is_the_newest_one() -> None:
    events = [advance(*versions, watched=True, location=FIRST) for versions in ((7, 8), (None, 2))]
    found = of_orders(*events)
    assert (found["previous_version"], found["version"]) == (None, 2)


def test_an_event_that_does_not_say_where_the_table_was_continues_the_others() -> None:
    found = of_orders(advance(1, 2, location=FIRST), advance(2, 3), advance(3, 4, location=FIRST))
    assert (found["previous_version"], found["version"]) == (1, 4)
    found = of_orders(advance(1, 2, location=FIRST), advance(2, 3), advance(1, 2, location=SECOND))
    assert (found["previous_version"], found["version"]) == (None, 2)


def test_events_are_merged_once_each_in_the_order_of_their_times() -> None:
    events = [advance(7, 8), advance(None, 1), advance(1, 2)]
    for hour, event in enumerate(events):
        event.timestamp = datetime(2026, 11, 1, hour, tzinfo=UTC)
    by_alias = {ORDERS: events, "the alias of the first one": events[:1]}
    reversed_by_the_database = {ORDERS: events[::-1]}

    for triggering in (by_alias, reversed_by_the_database):
        found = new_versions(triggering)["shop$orders"]
        assert (found["previous_version"], found["version"]) == (None, 2)


def test_a_table_that_was_created_again_and_has_a_greater_version_is_read_from_its_first_row() -> None:
    events = [advance(3, 4, watched=True), advance(None, 9, watched=True)]
    assert of_orders(*events)["previous_version"] is None
    assert of_orders(*reversed(events))["previous_version"] is None
    found = of_orders(*events, advance(9, 10, watched=True))
    assert (found["previous_version"], found["version"]) == (None, 10)


def test_a_repeated_event_that_does_not_know_what_it_follows_takes_nothing_away() -> None:
    found = of_orders(advance(3, 4), advance(None, 4, watched=True))
    assert (found["previous_version"], found["version"]) == (3, 4)


def test_an_event_that_follows_no_version_reads_the_whole_table() -> None:
    found = of_orders(advance(None, 4, watched=True), advance(4, 5, watched=True))
    assert (found["previous_version"], found["version"]) == (None, 5)


def test_partitions_are_those_of_all_events_or_unknown() -> None:
    both = of_orders(advance(1, 2, partitions=["b"]), advance(2, 3, partitions=["a", "b"]))
    assert both["partitions"] == ["a", "b"]
    assert "partitions" not in of_orders(advance(1, 2, partitions=["b"]), advance(2, 3))


@pytest.mark.parametrize(
    "extra",
    [None, {}, {"version": 3}, {"table": "shop$orders"}, {"payload": "text"}, {"from_rest_api": True}],
)
def test_an_event_without_a_version_is_left_out(extra: Any) -> None:
    assert new_versions({ORDERS: [SimpleNamespace(extra=extra)]}) == {}


def test_an_event_without_a_new_version_is_left_out() -> None:
    assert of_orders(advance(4, 4)) is None


def test_a_run_that_a_person_started_has_no_versions() -> None:
    assert new_versions({}) == {}
