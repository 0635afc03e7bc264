"""Assets that are updated when their table advances."""

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
    asked_for = {"poll_interval": 5, "after_version": 7, "data_only": False}
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


def test_a_template_is_refused() -> None:
    with pytest.raises(ValueError, match="templates are not allowed"):
        watched_table("{{ params.table }}", "lake")


def test_connections_with_one_authority_watch_the_same_asset() -> None:
    watched = watched_table("sales$orders", "lake_read", asset_authority="lake")
    assert watched.uri == lance_table("sales$orders", "lake").uri
    (watcher,) = watched.watchers
    assert watcher.trigger.serialize()[1]["lance_conn_id"] == "lake_read"
