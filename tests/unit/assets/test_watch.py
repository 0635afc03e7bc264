"""Assets that hear of their table's advances."""

import pytest

from airflow_provider_lancens.assets.table import lance_table
from airflow_provider_lancens.assets.watch import watched_table


def test_a_watched_table_is_the_same_asset_as_the_table() -> None:
    assert watched_table("sales$orders", "lake") == watched_table("Sales$Orders", "lake")
    assert watched_table("sales$orders", "lake").uri == lance_table("sales$orders", "lake").uri


def test_each_asset_has_a_cursor_of_its_own() -> None:
    (one,), (other,) = (watched_table(t, "lake").watchers for t in ("sales$orders", "sales$items"))
    assert one.trigger.serialize()[1]["cursor"] != other.trigger.serialize()[1]["cursor"]


def test_airflow_keeps_the_trigger_as_it_was_asked_for() -> None:
    (watcher,) = watched_table("sales$orders", "lake", poll_interval=5, after_version=7).watchers
    assert watcher.trigger.serialize()[1] == {
        "table": "sales$orders",
        "lance_conn_id": "lake",
        "cursor": "lance://lake/sales/orders",
        "after_version": 7,
        "poll_interval": 5,
    }


def test_a_template_is_refused() -> None:
    with pytest.raises(ValueError, match="no template"):
        watched_table("{{ params.table }}", "lake")
