"""An auth manager of tests: Airflow's simple one, with users who may read less."""

from typing import Any

from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager

WITHOUT_DAGS = "without_dags"
"""May read assets, but no DAG."""
WITHOUT_ASSETS = "without_assets"
VIEWER = "viewer"
USERS = {VIEWER: "viewer", WITHOUT_DAGS: "viewer", WITHOUT_ASSETS: "viewer"}
"""Role of each."""


class RestrictingAuthManager(SimpleAuthManager):
    """Takes permissions from some users."""

    def is_authorized_dag(self, *, user: Any, **asked: Any) -> bool:
        return user.username != WITHOUT_DAGS and super().is_authorized_dag(user=user, **asked)

    def is_authorized_asset(self, *, user: Any, **asked: Any) -> bool:
        return user.username != WITHOUT_ASSETS and super().is_authorized_asset(user=user, **asked)
