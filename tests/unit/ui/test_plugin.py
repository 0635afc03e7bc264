"""The Lance page is registered with Airflow, and nothing is loaded before its first visit."""

import asyncio
import importlib
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import entry_points
from typing import Any

import pytest
from airflow.api_fastapi.core_api.datamodels.plugins import ExternalViewResponse

from airflow_provider_lancens.ui import plugin


def test_airflow_finds_the_plugin_by_its_entry_point() -> None:
    found = [one for one in entry_points(group="airflow.plugins") if one.name == "lance"]
    assert [one.load() for one in found] == [plugin.LancePlugin]


def test_airflows_ui_accepts_the_views() -> None:
    views = [ExternalViewResponse.model_validate(view) for view in plugin.LancePlugin.external_views]
    assert [view.destination for view in views] == ["nav", "dag_run", "task_instance"]
    assert len({view.url_route for view in views}) == 3


def test_views_are_below_the_path_that_airflow_is_served_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://host/airflow/")
    try:
        view = importlib.reload(plugin).LancePlugin.external_views[0]
    finally:
        monkeypatch.undo()
        importlib.reload(plugin)
    assert view["href"] == "/airflow/lance/"


def test_the_application_is_created_once_however_many_visit_at_once() -> None:
    created: list[Any] = []
    answered: list[str] = []

    def create() -> Any:
        created.append(1)

        async def app(scope: Any, receive: Any, send: Any) -> None:
            answered.append(scope["path"])

        return app

    lazy = plugin.LazyApp(create)
    assert not created

    def visit(number: int) -> None:
        asyncio.run(lazy({"path": f"/{number}"}, None, None))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(visit, range(8)))
    assert len(created) == 1
    assert sorted(answered) == [f"/{number}" for number in range(8)]
