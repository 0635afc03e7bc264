"""The extra of a task's asset events."""

import logging
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import Asset, AssetAlias
from airflow.sdk.exceptions import AirflowRuntimeError, ErrorType
from airflow.sdk.execution_time.comms import ErrorResponse
from airflow.sdk.execution_time.context import OutletEventAccessors, _AssetRefResolutionMixin

from airflow_provider_lancens.assets.table import LanceTable, emit_asset_event, emit_no_event, lance_table

TABLE = LanceTable.of("lake", "sales$orders")
NOTE = {"table": "sales$orders", "previous_version": 6, "version": 7}


def noted(*outlets: Any) -> OutletEventAccessors:
    events = OutletEventAccessors()
    emit_asset_event({"outlet_events": events}, outlets, TABLE, 7, 6)  # type: ignore[typeddict-item]
    return events


def test_the_tables_asset_event_has_the_version() -> None:
    outlet = lance_table("sales$orders", "lake")
    assert noted(outlet)[outlet].extra == NOTE


def extra_of(*writes: tuple[int | None, int, str, int]) -> dict[str, Any]:
    """The extra of the event after several writes of one task: the versions, the operation, inserted rows."""
    outlet, events = lance_table("sales$orders", "lake"), OutletEventAccessors()
    for previous, version, operation, inserted in writes:
        more = {"operation": operation, "inserted": inserted}
        emit_asset_event({"outlet_events": events}, [outlet], TABLE, version, previous, more)  # type: ignore[typeddict-item]
    return events[outlet].extra


def test_an_event_covers_all_writes_of_a_task() -> None:
    of_two = {"table": "sales$orders", "operation": "upsert", "inserted": 13}
    assert extra_of((5, 6, "append", 10), (7, 8, "upsert", 3)) == {
        **of_two,
        "previous_version": 5,
        "version": 8,
    }
    assert extra_of((None, 1, "append", 10), (1, 2, "upsert", 3)) == {
        **of_two,
        "previous_version": None,
        "version": 2,
    }
    in_other_order = extra_of((1, 2, "upsert", 3), (None, 1, "append", 10))
    assert (in_other_order["previous_version"], in_other_order["version"]) == (None, 2)


def test_a_write_that_changed_nothing_takes_nothing_from_the_event_of_a_task() -> None:
    appended, unchanged = (None, 6, "append", 10), (6, 6, "delete", 0)
    assert extra_of(appended, unchanged) == extra_of(appended)
    assert extra_of((5, 5, "delete", 0), (5, 6, "append", 10)) == extra_of((5, 6, "append", 10))
    assert extra_of(unchanged)["previous_version"] == 6


def test_events_of_other_outlets_have_no_version() -> None:
    others = [lance_table("sales$items", "lake"), lance_table("sales$orders", "other"), Asset("s3://b/k")]
    events = noted(*others)
    assert [events[other].extra for other in others] == [{}, {}, {}]


def test_an_asset_alias_gets_the_tables_asset() -> None:
    alias = AssetAlias("whatever was written")
    (event,) = noted(alias)[alias].asset_alias_events
    assert event.dest_asset_key.uri == TABLE.uri
    assert event.extra == NOTE


def test_an_outlet_with_another_authority_is_told_with_what_to_write(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        noted(lance_table("sales$orders", "lake_rw"))
        noted(lance_table("sales$items", "lake_rw"), Asset("s3://b/k"), lance_table("sales$orders", "lake"))
    [said] = [record.getMessage() for record in caplog.records]
    assert "lance://lake_rw/sales/orders" in said
    assert "write lance_table('sales$orders', 'lake')" in said


def test_only_the_tables_asset_is_taken_from_the_outlets_of_a_task_that_changed_nothing() -> None:
    other = lance_table("sales$orders", "lake_rw")
    task = SimpleNamespace(outlets=[lance_table("sales$orders", "lake"), other])
    emit_no_event({"outlet_events": OutletEventAccessors()}, task, TABLE)  # type: ignore[typeddict-item]
    assert task.outlets == [other]


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> dict[str, Asset]:
    """The assets that Airflow knows, by URI."""
    assets: dict[str, Asset] = {}

    def found(name: str | None = None, uri: str | None = None) -> Asset:
        for asset in assets.values():
            if name == asset.name or uri == asset.uri:
                return asset
        raise AirflowRuntimeError(ErrorResponse(error=ErrorType.ASSET_NOT_FOUND))

    monkeypatch.setattr(_AssetRefResolutionMixin, "_get_asset_from_db", staticmethod(found))
    monkeypatch.setattr(_AssetRefResolutionMixin, "_asset_ref_cache", {})
    return assets


def test_an_alias_gets_the_asset_by_the_name_that_dags_have_given_it(known: dict[str, Asset]) -> None:
    known[TABLE.uri] = lance_table("sales$orders", "lake", name="orders")
    alias = AssetAlias("whatever was written")
    (event,) = noted(alias)[alias].asset_alias_events
    assert (event.dest_asset_key.name, event.dest_asset_key.uri) == ("orders", TABLE.uri)
    assert event.extra == NOTE


@pytest.mark.parametrize("reference", [Asset.ref(uri=TABLE.uri), Asset.ref(name="orders")])
def test_an_outlet_that_refers_to_the_tables_asset_has_the_version(
    known: dict[str, Asset], reference: Any
) -> None:
    known[TABLE.uri] = lance_table("sales$orders", "lake", name="orders")
    assert noted(reference)[reference].extra == NOTE


def test_a_reference_to_another_asset_or_to_none_has_no_version(known: dict[str, Asset]) -> None:
    known["other"] = Asset(name="other", uri="s3://b/k")
    other = Asset.ref(name="other")
    assert noted(other, Asset.ref(name="nothing"))[other].extra == {}


def test_a_reference_is_taken_from_the_outlets_of_a_task_that_changed_nothing(
    known: dict[str, Asset],
) -> None:
    known[TABLE.uri] = lance_table("sales$orders", "lake", name="orders")
    task = SimpleNamespace(outlets=[Asset.ref(name="orders"), Asset.ref(name="nothing")])
    emit_no_event({"outlet_events": OutletEventAccessors()}, task, TABLE)  # type: ignore[typeddict-item]
    assert task.outlets == [Asset.ref(name="nothing")]
