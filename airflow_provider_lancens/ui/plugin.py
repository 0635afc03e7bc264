"""Registers the Lance page with Airflow.

Every Airflow process imports this module, so it loads nothing: the application is created when the page is
visited for the first time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from airflow.configuration import conf
from airflow.plugins_manager import AirflowPlugin

URL_PREFIX = "/lance"
_OF_A_TASK = "dag_id={DAG_ID}&run_id={RUN_ID}&task_id={TASK_ID}&map_index={MAP_INDEX}"
_OF_A_RUN = "dag_id={DAG_ID}&run_id={RUN_ID}"


class LazyApp:
    """An ASGI application that is created at its first request.

    Args:
        create: creates the application.
    """

    def __init__(self, create: Callable[[], Any]) -> None:
        self._create = create
        self._app: Any = None
        self._lock = threading.Lock()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request to the application."""
        await self._created()(scope, receive, send)

    def _created(self) -> Any:
        with self._lock:
            if self._app is None:
                self._app = self._create()
        return self._app


def _create_app() -> Any:
    from airflow_provider_lancens.ui.web_app import create_app

    return create_app()


def _view(name: str, destination: str, route: str, query: str = "") -> dict[str, str]:
    # An iframe's address isn't below Airflow's base URL unless it says so.
    base = urlsplit(conf.get("api", "base_url", fallback="") or "").path.rstrip("/")
    icons = f"{base}{URL_PREFIX}/static/icon"
    return {
        "name": name,
        "href": f"{base}{URL_PREFIX}/" + (f"?{query}" if query else ""),
        "destination": destination,
        "url_route": route,
        "icon": f"{icons}.svg",
        "icon_dark_mode": f"{icons}-dark.svg",
    }


class LancePlugin(AirflowPlugin):
    """The Lance page: in the navigation, and as a tab of each DAG run and task instance."""

    name = "lance"
    fastapi_apps = [{"app": LazyApp(_create_app), "url_prefix": URL_PREFIX, "name": "Lance"}]
    external_views = [
        {**_view("Lance", "nav", "lance"), "category": "browse"},
        _view("Lance", "dag_run", "lance-run", _OF_A_RUN),
        _view("Lance", "task_instance", "lance-task", _OF_A_TASK),
    ]
