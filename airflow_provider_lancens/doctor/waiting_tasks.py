"""Task instances that wait for a version of a table: deferred, rescheduled, or polling in a worker."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow.models.renderedtifields import RenderedTaskInstanceFields
from airflow.models.taskinstance import TaskInstance
from airflow.models.taskreschedule import TaskReschedule
from airflow.models.trigger import Trigger
from sqlalchemy import Text, and_, cast, func, select

from airflow_provider_lancens.identifiers import InvalidIdentifierError, TableId
from airflow_provider_lancens.namespace.table_status import VersionCondition

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

_TRIGGERS = "airflow_provider_lancens.triggers.table_version_trigger."
_BETWEEN_POKES = ("up_for_reschedule", "scheduled", "queued")
_POLLING = ("running", *_BETWEEN_POKES)
_BOUNDS = ("after_version", "min_version", "other_than")
_TASK = (
    TaskInstance.dag_id,
    TaskInstance.run_id,
    TaskInstance.task_id,
    TaskInstance.map_index,
    TaskInstance.state,
    TaskInstance.trigger_timeout,
)
_FIELDS = {"table", "lance_conn_id", "after_version", "min_version"}
"""Template fields of the sensor."""


@dataclass(frozen=True, slots=True)
class WaitingTask:
    """A task instance that waits for a table."""

    table: TableId
    condition: str
    """What the task instance waits for."""
    since: datetime | None
    """When the wait began: with the first poke, if the task is rescheduled between pokes."""
    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    state: str
    until: datetime | None
    """When a deferred wait times out."""


def waiting_tasks(session: Session, conn_ids: Collection[str]) -> Iterator[WaitingTask]:
    """Yield the task instances that wait through some connections, once for each of their tables.

    Args:
        session: of Airflow's database.
        conn_ids: the connections.
    """
    yield from _deferred(session, conn_ids)
    yield from _polling(session, conn_ids)


def valid_tables(fields: Mapping[str, Any]) -> list[TableId]:
    """Return the valid identifiers in the field ``table``, which is one or a list.

    Args:
        fields: rendered template fields by name, as an author writes them; or a trigger's arguments or an
            XCom, which print identifiers.
    """
    named = fields.get("table")
    tables = (_parsed(name) for name in (named if isinstance(named, list) else [named]))
    return [table for table in tables if table is not None]


def _deferred(session: Session, conn_ids: Collection[str]) -> Iterator[WaitingTask]:
    statement = (
        select(*_TASK, TaskInstance.start_date, Trigger)
        .join(Trigger, TaskInstance.trigger_id == Trigger.id)
        .where(TaskInstance.state == "deferred", Trigger.classpath.startswith(_TRIGGERS))
    )
    rows: Any = session.execute(statement)
    for *task, began, trigger in rows:
        for wait in trigger.kwargs.get("waits") or [trigger.kwargs]:
            if wait.get("lance_conn_id") in conn_ids:
                for table in valid_tables(wait):
                    yield WaitingTask(table, _condition(wait), began, *task)


def _polling(session: Session, conn_ids: Collection[str]) -> Iterator[WaitingTask]:
    rendered = RenderedTaskInstanceFields
    same = and_(
        *(getattr(rendered, key) == getattr(TaskInstance, key) for key in ("dag_id", "task_id", "run_id")),
        rendered.map_index == TaskInstance.map_index,
    )
    # The start date of a task instance is the start of its last poke.
    first_poke = (
        select(TaskReschedule.ti_id, func.min(TaskReschedule.start_date).label("start_date"))
        .group_by(TaskReschedule.ti_id)
        .subquery()
    )
    statement = (
        select(*_TASK, TaskInstance.start_date, rendered.rendered_fields, first_poke.c.start_date)
        .join(rendered, same)
        .outerjoin(first_poke, first_poke.c.ti_id == TaskInstance.id)
        .where(TaskInstance.state.in_(_POLLING))
        .where(cast(rendered.rendered_fields, Text).contains('"min_version"'))
    )
    rows: Any = session.execute(statement)
    for *task, began, fields, first in rows:
        if not fields.keys() >= _FIELDS or fields["lance_conn_id"] not in conn_ids:
            continue
        if first is None and task[4] in _BETWEEN_POKES:
            continue  # this try hasn't begun: its fields are an earlier try's
        for table in valid_tables(fields):
            yield WaitingTask(table, _condition(fields), first or began, *task)


def _condition(wait: Mapping[str, Any]) -> str:
    texts = {name: str(wait.get(name)) for name in _BOUNDS}
    bounds: dict[str, Any] = {name: int(text) for name, text in texts.items() if text.isdigit()}
    # `other_than` only detects a table that was created again: the other bounds describe the wait.
    if len(bounds) > 1:
        bounds.pop("other_than", None)
    return str(VersionCondition(**bounds))


def _parsed(table: Any) -> TableId | None:
    for parse in (TableId.written, TableId.of_result):  # in the printed form, a name may contain a dot
        with contextlib.suppress(InvalidIdentifierError):
            return parse(table)
    return None
