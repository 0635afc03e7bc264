"""The user of a request, and the DAGs that they may read, by Airflow's own login and permissions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.core_api.security import get_user
from fastapi import Depends, HTTPException

from airflow_provider_lancens.hooks.table_checks import tag_starts


@dataclass(frozen=True)
class Access:
    """What a logged-in user may read."""

    user: Any

    @cached_property
    def dag_ids(self) -> set[str]:
        """The ids of the DAGs that the user may read."""
        return set(get_auth_manager().get_authorized_dag_ids(user=self.user))

    @cached_property
    def _hidden_starts(self) -> tuple[str, ...]:
        """How the default keys and tags of other DAGs begin."""
        from airflow.models.dag import DagModel
        from airflow.utils.session import create_session
        from sqlalchemy import select

        with create_session() as session:
            hidden = set(session.scalars(select(DagModel.dag_id))) - self.dag_ids
        return tuple(start for dag_id in hidden for start in (f"{dag_id}/", *tag_starts(dag_id)))

    def may_see_name(self, name: str) -> bool:
        """Return whether a key or a tag doesn't begin with the id of a DAG that the user may not read."""
        return not name.startswith(self._hidden_starts)


def require_access(user: Annotated[Any, Depends(get_user)]) -> Access:
    """Return what the user of a request may read.

    Raises:
        HTTPException: 401 if nobody is logged in, 403 if the user may not read assets.
    """
    if not get_auth_manager().is_authorized_asset(method="GET", user=user):
        raise HTTPException(403, "To see Lance tables you need the permission to read assets.")
    return Access(user)


AccessDep = Annotated[Access, Depends(require_access)]
"""An argument of a route, as `require_access` returns it."""
