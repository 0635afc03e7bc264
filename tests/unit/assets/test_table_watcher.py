"""Assets that are updated when their table advances."""

import math
from datetime import timedelta
from typing import Any

import pytest

from airflow_provider_lancens.assets.table import lance_table
from airflow_provider_lancens.assets.table_watcher import watched_table


def test_a_watched_table_is_the_same_asset_as_the_table() -> None:
    assert watched_table("sales$orders", "lake") == watched_table("Sales$Orders", "lake")
    assert watched_table("sales$orders", "lake").uri == lance_table("sales$orders", "lake").uri


def test_each_asset_has_its_own_cursor() -> None:
    (one,), (other,) = (watched_table(t, "lake").watchers for t in ("sales$orders", "sales$items"))
    assert one.trigger.serialize()[1]["cursor"] != other.trigger.serialize()[1]["cursor"]


def test_airflow_serializes_the_trigger_with_its_arguments() -> None:
    asked_for: dict[str, Any] = {"poll_interval": 5, "after_version": 7, "data_only": False}
    (watcher,) = watched_table("sales$orders", "lake", **asked_for).watchers
    assert watcher.trigger.serialize()[1] == {
        "table": "sales$orders",
        "lance_conn_id": "lake",
        "cursor": "lance://lake/sales/orders",
        **asked_for,
    }


def test_maintenance_of_a_watched_table_starts_no_dag_by_default() -> None:
    (watcher,) = watched_table("sales$orders", "lake").watchers
    assert watcher.trigger.serialize()[1]["data_only"] is True


def test_a_staged_version_to_begin_after_is_refused() -> None:
    with pytest.raises(ValueError, match="after_version=9223372036854775815: is the number of a staged"):
        watched_table("sales$orders", "lake", after_version=2**63 + 7)


@pytest.mark.parametrize(("given", "seconds"), [(1, 1), (2.5, 2.5), (timedelta(minutes=1), 60)])
def test_an_interval_is_stored_in_seconds(given: Any, seconds: float) -> None:
    (watcher,) = watched_table("sales$orders", "lake", poll_interval=given).watchers
    assert watcher.trigger.serialize()[1]["poll_interval"] == seconds


@pytest.mark.parametrize(
    "interval",
    [0, -5, 0.001, timedelta(0), timedelta(milliseconds=999), "60", None, math.nan, math.inf, True],
)
def test_an_interval_that_would_end_or_overheat_the_watch_is_refused(interval: Any) -> None:
    with pytest.raises(
        ValueError, match=r"^poll_interval: expected a finite number of seconds of at least 1"
    ):
        watched_table("sales$orders", "lake", poll_interval=interval)


@pytest.mark.parametrize(("given", "version"), [("5", 5), ("None", None), ("", None)])
def test_a_version_to_begin_after_is_stored_as_a_number(given: Any, version: int | None) -> None:
    (watcher,) = watched_table("sales$orders", "lake", after_version=given).watchers
    assert watcher.trigger.serialize()[1]["after_version"] == version


def test_a_flag_that_is_neither_true_nor_false_is_refused() -> None:
    text: Any = "false"
    with pytest.raises(TypeError, match=r"^data_only: expected True or False, got 'false'"):
        watched_table("sales$orders", "lake", data_only=text)


def test_a_template_is_refused() -> None:
    with pytest.raises(ValueError, match="templates are not allowed"):
        watched_table("{{ params.table }}", "lake")


def test_connections_with_one_authority_watch_the_same_asset() -> None:
    watched = watched_table("sales$orders", "lake_read", asset_authority="lake")
    assert watched.uri == lance_table("sales$orders", "lake").uri
    (watcher,) = watched.watchers
    assert watcher.trigger.serialize()[1]["lance_conn_id"] == "lake_read"
