"""Events of a watched table, and the cursor stored for them."""

import importlib
import json
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

import pytest

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.table_status import TableStatus
from airflow_provider_lancens.triggers import table_advanced_trigger
from airflow_provider_lancens.triggers.event_stream import TableEvent
from airflow_provider_lancens.triggers.table_advanced_trigger import LanceTableAdvancedTrigger

TABLE = "sales$orders"


class Store:
    """An asset's state store as passed to a trigger by Airflow 3.3."""

    def __init__(self, **kept: Any) -> None:
        self.kept = kept

    async def aget(self, key: str, default: Any = None) -> Any:
        return self.kept.get(key, default)

    async def aset(self, key: str, value: Any) -> None:
        self.kept[key] = value

    @property
    def version(self) -> Any:
        return self.kept.get("lance_version.sales.orders", {}).get("version")


class SharedStore(Store):
    """The store of two assets that share one trigger."""

    async def aget(self, key: str, default: Any = None) -> Any:
        raise ValueError("Task has 2 concrete inlets and outlets")


class BrokenStore(Store):
    """A store whose API server is unreachable when a version is stored."""

    async def aset(self, key: str, value: Any) -> None:
        raise ConnectionError("unreachable")


def trigger(store: Store | None = None, **arguments: Any) -> LanceTableAdvancedTrigger:
    given = {"data_only": False, **arguments}  # the streams below have no tables
    made = LanceTableAdvancedTrigger(table=TABLE, lance_conn_id="lake", **given)
    made.asset_state_store = store  # type: ignore[assignment]
    return made


def status(version: int | None, location: str | None = "/lake/orders", denial: str = "") -> TableStatus:
    return TableStatus(TableId.parse(TABLE), location, version or 0, denial=denial)


def as_status(version: TableStatus | int | None) -> TableStatus:
    return version if isinstance(version, TableStatus) else status(version)


async def stream(versions: Iterable[TableStatus | int | None]) -> AsyncIterator[TableEvent]:
    for version in versions:
        change = TableEvent(as_status(version))
        yield change
        await change.settle()


async def emitted(
    watcher: LanceTableAdvancedTrigger, *versions: TableStatus | int | None
) -> Sequence[tuple[int | None, int]]:
    events = [event.payload async for event in watcher.filter_shared_stream(stream(versions))]
    assert {event["table"] for event in events} <= {TABLE}
    assert {event["location"] for event in events} <= {one.location for one in map(as_status, versions)}
    return [(event["previous_version"], event["version"]) for event in events]


async def test_each_event_starts_at_the_version_of_the_previous_one() -> None:
    assert await emitted(trigger(), 1, 2, 5) == [(None, 1), (1, 2), (2, 5)]


async def test_a_restart_continues_after_the_last_stored_event() -> None:
    store = Store()
    assert await emitted(trigger(store), 3) == [(None, 3)]
    assert store.version == 3
    assert await emitted(trigger(store), 3, 8) == [(3, 8)]


async def test_the_cursor_advances_only_once_the_event_is_stored() -> None:
    store = Store()
    events = trigger(store).filter_shared_stream(stream([3, 4]))
    await anext(events)
    assert store.version is None
    await anext(events)
    assert store.version == 3


async def test_without_a_store_each_start_emits_the_newest_version() -> None:
    assert await emitted(trigger(), 8) == [(None, 8)]
    for _ in range(2):
        assert await emitted(trigger(after_version=5), 8) == [(5, 8)]


@pytest.mark.parametrize("store", [None, Store()])
async def test_versions_up_to_the_given_one_emit_no_event(store: Store | None) -> None:
    assert await emitted(trigger(store, after_version=5), 4, 5, 7) == [(5, 7)]


async def test_the_stored_cursor_takes_precedence_over_the_argument() -> None:
    store = Store(**{"lance_version.sales.orders": {"version": 3, "location": "/lake/orders"}})
    assert await emitted(trigger(store, after_version=5), 4) == [(3, 4)]


@pytest.mark.parametrize("version", [2, 3, 7])
async def test_a_table_that_was_recreated_between_two_polls_starts_anew(version: int) -> None:
    recreated = status(version, "/lake/orders-2")
    assert await emitted(trigger(), 3, recreated) == [(None, 3), (None, version)]


async def test_a_table_that_was_recreated_during_a_restart_starts_anew() -> None:
    store = Store()
    await emitted(trigger(store), 3)
    assert await emitted(trigger(store), status(7, "/lake/orders-2")) == [(None, 7)]


async def test_a_refusal_that_passes_repeats_no_event() -> None:
    assert await emitted(trigger(), 3, status(None, None, "access denied"), 3, 4) == [(None, 3), (3, 4)]


@pytest.mark.parametrize("versions", [(7, 2), (7, None, 2), (7, None, 7), (7, None, 9)])
async def test_a_recreated_table_starts_anew(versions: tuple[int | None, ...]) -> None:
    assert await emitted(trigger(), *versions) == [(None, 7), (None, versions[-1])]


async def test_a_recreated_table_starts_anew_also_above_the_last_event(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def only_maintenance(*_: Any) -> bool:
        return False

    monkeypatch.setattr(table_advanced_trigger, "wait_for_data_change", only_maintenance)
    assert await emitted(trigger(data_only=True), 3, 7, 5) == [(None, 3), (None, 5)]


async def test_a_version_is_emitted_even_if_the_cursor_cannot_be_stored() -> None:
    assert await emitted(trigger(BrokenStore()), 1, 2) == [(None, 1), (1, 2)]


async def test_two_assets_with_one_trigger_are_refused_with_what_to_do() -> None:
    with pytest.raises(ValueError, match=r"cursor= of its own"):
        await emitted(trigger(SharedStore()), 1)


def test_only_a_trigger_with_a_store_waits_for_its_event_to_be_stored() -> None:
    assert trigger().shared_stream_key() is None
    one, other = trigger(Store(), cursor="a"), trigger(Store(), cursor="b")
    assert one.shared_stream_key() is not None
    assert one.shared_stream_key() != other.shared_stream_key()


def test_a_trigger_is_restored_from_its_serialized_form() -> None:
    path, arguments = trigger(cursor="orders", after_version=3, poll_interval=5, data_only=True).serialize()
    assert all(value is None or isinstance(value, str | int | float) for value in arguments.values())
    module, _, name = path.rpartition(".")
    again = getattr(importlib.import_module(module), name)(**json.loads(json.dumps(arguments)))
    assert again.serialize() == (path, arguments)
