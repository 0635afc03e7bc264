"""Task instances that wait for a version of a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from airflow.models.renderedtifields import RenderedTaskInstanceFields
from airflow.models.taskinstance import TaskInstance
from airflow.models.trigger import Trigger
from airflow.utils.session import create_session
from sqlalchemy import Text, and_, cast, select

from airflow_provider_lancens.namespace.table_status import VersionCondition
from airflow_provider_lancens.ui.access import Access
from airflow_provider_lancens.ui.rendered_tables import named_tables

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

_TRIGGERS = "airflow_provider_lancens.triggers.table_version_trigger."
_POLLING = ("running", "up_for_reschedule")
_BOUNDS = ("after_version", "min_version", "other_than")
_FIELDS = {"table", "lance_conn_id", "after_version", "min_version"}
"""Template fields of the sensor."""


def list_waits(conn_id: str, table: str, access: Access) -> dict[str, Any]:
    """Return the task instances that wait for a table, the longest wait first.

    Args:
        conn_id: the connection that they wait through.
        table: table identifier.
        access: of the user.

    Returns:
        ``waits``, each with its task instance, ``state``, ``since``, ``until`` and what it waits ``for``, and
        the number of ``hidden`` ones, of DAGs that the user may not see.
    """
    with create_session() as session:
        found = [
            {**_task(task), "for": wanted, "until": _iso(task.trigger_timeout)}
            for task, wanted in (*_deferred(session, conn_id, table), *_polling(session, conn_id, table))
        ]
    seen = [wait for wait in found if wait["dag_id"] in access.dag_ids]
    return {"waits": sorted(seen, key=lambda wait: wait["since"] or ""), "hidden": len(found) - len(seen)}


def _deferred(session: Session, conn_id: str, table: str) -> Iterator[tuple[TaskInstance, str]]:
    statement = (
        select(TaskInstance, Trigger)
        .join(Trigger, TaskInstance.trigger_id == Trigger.id)
        .where(TaskInstance.state == "deferred", Trigger.classpath.startswith(_TRIGGERS))
    )
    for task, trigger in session.execute(statement):
        waits = trigger.kwargs.get("waits") or [trigger.kwargs]
        for wait in waits:
            if wait.get("lance_conn_id") == conn_id and wait.get("table") == table:
                yield task, _condition(wait)


def _polling(session: Session, conn_id: str, table: str) -> Iterator[tuple[TaskInstance, str]]:
    rendered = RenderedTaskInstanceFields
    same = and_(
        *(getattr(rendered, key) == getattr(TaskInstance, key) for key in ("dag_id", "task_id", "run_id")),
        rendered.map_index == TaskInstance.map_index,
    )
    statement = (
        select(TaskInstance, rendered.rendered_fields)
        .join(rendered, same)
        .where(TaskInstance.state.in_(_POLLING))
        .where(cast(rendered.rendered_fields, Text).contains('"min_version"'))
    )
    for task, fields in session.execute(statement):
        if fields.keys() >= _FIELDS and fields["lance_conn_id"] == conn_id and table in named_tables(fields):
            yield task, _condition(fields)


def _condition(wait: Mapping[str, Any]) -> str:
    texts = {name: str(wait.get(name)) for name in _BOUNDS}
    bounds = {name: int(text) for name, text in texts.items() if text.isdigit()}
    # The version that was polled last is excluded in case the table is recreated; other bounds say more.
    if len(bounds) > 1:
        bounds.pop("other_than", None)
    return str(VersionCondition(**bounds))


def _task(task: TaskInstance) -> dict[str, Any]:
    return {
        "dag_id": task.dag_id,
        "run_id": task.run_id,
        "task_id": task.task_id,
        "map_index": task.map_index,
        "state": str(task.state),
        "since": _iso(task.start_date),
    }


def _iso(time: Any) -> str | None:
    return time.isoformat() if time else None
