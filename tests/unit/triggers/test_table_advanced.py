"""Which events a watched table makes, and what is noted of them."""

import importlib
import json
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

import pytest

from airflow_provider_lancens.hooks.versions import TableVersion
from airflow_provider_lancens.triggers.news import News
from airflow_provider_lancens.triggers.table_advanced import LanceTableAdvancedTrigger

TABLE = "sales$orders"


class Store:
    """An asset's state store as Airflow 3.3 gives it to a trigger."""

    def __init__(self, **kept: Any) -> None:
        self.kept = kept

    async def aget(self, key: str, default: Any = None) -> Any:
        return self.kept.get(key, default)

    async def aset(self, key: str, value: Any) -> None:
        self.kept[key] = value

    @property
    def version(self) -> Any:
        return self.kept.get("lance_version.sales.orders")


class NobodysStore(Store):
    """What two assets get that share one trigger."""

    async def aget(self, key: str, default: Any = None) -> Any:
        raise ValueError("Task has 2 concrete inlets and outlets")


class BrokenStore(Store):
    """A store whose API server is away when a version is to be noted."""

    async def aset(self, key: str, value: Any) -> None:
        raise ConnectionError("away")


def trigger(store: Store | None = None, **arguments: Any) -> LanceTableAdvancedTrigger:
    made = LanceTableAdvancedTrigger(table=TABLE, lance_conn_id="lake", **arguments)
    made.asset_state_store = store  # type: ignore[assignment]
    return made


async def stream(versions: Iterable[int | None]) -> AsyncIterator[News]:
    for version in versions:
        news = News(TableVersion(TABLE, version, "/lake/orders") if version else None)
        yield news
        await news.settle()


async def told(watcher: LanceTableAdvancedTrigger, *versions: int | None) -> Sequence[tuple[int | None, int]]:
    events = [event.payload async for event in watcher.filter_shared_stream(stream(versions))]
    assert {event["table"] for event in events} <= {TABLE}
    return [(event["previous_version"], event["version"]) for event in events]


async def test_each_event_goes_on_where_the_one_before_ended() -> None:
    assert await told(trigger(), 1, 2, 5) == [(None, 1), (1, 2), (2, 5)]


async def test_a_restart_goes_on_where_the_last_stored_event_ended() -> None:
    store = Store()
    assert await told(trigger(store), 3) == [(None, 3)]
    assert store.version == 3
    assert await told(trigger(store), 3, 8) == [(3, 8)]


async def test_an_event_is_noted_only_once_it_is_stored() -> None:
    store = Store()
    events = trigger(store).filter_shared_stream(stream([3, 4]))
    await anext(events)
    assert store.version is None
    await anext(events)
    assert store.version == 3


async def test_without_a_store_each_start_tells_the_newest_version() -> None:
    assert await told(trigger(), 8) == [(None, 8)]


@pytest.mark.parametrize("store", [None, Store()])
async def test_versions_up_to_the_given_one_are_no_news(store: Store | None) -> None:
    assert await told(trigger(store, after_version=5), 4, 5, 7) == [(5, 7)]


async def test_what_is_noted_counts_more_than_what_the_dag_says() -> None:
    store = Store(**{"lance_version.sales.orders": 3})
    assert await told(trigger(store, after_version=5), 4) == [(3, 4)]


@pytest.mark.parametrize("versions", [(7, 2), (7, None, 2), (7, None, 7), (7, None, 9)])
async def test_a_table_that_was_made_again_begins_anew(versions: tuple[int | None, ...]) -> None:
    assert await told(trigger(), *versions) == [(None, 7), (None, versions[-1])]


async def test_a_version_that_cannot_be_noted_is_told_all_the_same() -> None:
    assert await told(trigger(BrokenStore()), 1, 2) == [(None, 1), (1, 2)]


async def test_two_assets_with_one_trigger_are_told_how_to_get_two() -> None:
    with pytest.raises(ValueError, match=r"cursor= of its own"):
        await told(trigger(NobodysStore()), 1)


def test_only_a_trigger_that_can_note_a_version_asks_when_its_event_is_stored() -> None:
    assert trigger().shared_stream_key() is None
    one, other = trigger(Store(), cursor="a"), trigger(Store(), cursor="b")
    assert one.shared_stream_key() is not None
    assert one.shared_stream_key() != other.shared_stream_key()


def test_a_trigger_is_made_again_from_what_airflow_keeps_of_it() -> None:
    path, arguments = trigger(cursor="orders", after_version=3, poll_interval=5).serialize()
    assert all(value is None or isinstance(value, str | int | float) for value in arguments.values())
    module, _, name = path.rpartition(".")
    again = getattr(importlib.import_module(module), name)(**json.loads(json.dumps(arguments)))
    assert again.serialize() == (path, arguments)
