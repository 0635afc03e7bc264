"""Hooks of the Lance page are used for a while, then opened again."""

import json

import pytest

from airflow_provider_lancens.hooks.airflow_errors import AirflowNotFoundException
from airflow_provider_lancens.ui.open_hooks import OpenHooks


@pytest.fixture(autouse=True)
def lake(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = {"conn_type": "lance_hive2", "host": "127.0.0.1:1", "extra": {"root": "/lake"}}
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps(connection))


def test_a_hook_is_reused() -> None:
    hooks = OpenHooks()
    assert hooks.get("lake") is hooks.get("lake")


def test_a_changed_connection_takes_effect_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    hooks = OpenHooks(keep_seconds=0)
    before = hooks.get("lake").namespace_properties()["root"]
    monkeypatch.setenv(
        "AIRFLOW_CONN_LAKE", '{"conn_type": "lance_hive2", "host": "h", "extra": {"root": "/other"}}'
    )
    assert (before, hooks.get("lake").namespace_properties()["root"]) == ("/lake", "/other")


def test_a_viewer_does_not_learn_which_other_connections_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_DB", '{"conn_type": "postgres", "password": "hush-hush"}')
    monkeypatch.setenv("AIRFLOW_CONN_ODD", '{"conn_type": "http", "extra": "no JSON"}')
    messages = set()
    for conn_id in ("db", "odd", "none"):
        with pytest.raises(AirflowNotFoundException) as refused:
            OpenHooks().get(conn_id)
        messages.add(str(refused.value).replace(conn_id, "…"))
    assert messages == {"There is no Lance connection with the id '…'."}
