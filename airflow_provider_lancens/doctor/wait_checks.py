"""Deferred waits on a connection: whether there is what they wait for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from airflow_provider_lancens.doctor.findings import Finding
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.table_status import MISSING_SECONDS, TableStatus

if TYPE_CHECKING:
    from airflow_provider_lancens.hooks.lance_hook import LanceHook

_TRIGGERS = "airflow_provider_lancens.triggers.table_version_trigger."


def check_waits(hook: LanceHook) -> Iterator[Finding]:
    """Check that the tables exist that deferred tasks have been waiting for."""
    from sqlalchemy.exc import SQLAlchemyError

    try:
        waiting = _waited_for(hook.lance_conn_id)
    except SQLAlchemyError:
        return  # the check of the triggerer has told that the database can't be read
    yield from missing_tables(hook, waiting)


def missing_tables(hook: LanceHook, waiting: Mapping[TableId, str]) -> Iterator[Finding]:
    """Yield the tables that don't exist among those that tasks wait for.

    Args:
        hook: the connection's hook.
        waiting: a task that waits, by table.
    """
    for table, status in hook.poll_tables(list(waiting)).items():
        if isinstance(status, TableStatus) and status.location is None:
            yield Finding(
                "warning",
                f"table {table}",
                f"it does not exist, and {waiting[table]} has been waiting for it",
                "Correct the name in the sensor, or declare the table.",
            )


def _waited_for(conn_id: str) -> dict[TableId, str]:
    """Return the tables that deferred tasks have waited for since some minutes, with one task each."""
    from airflow.models.taskinstance import TaskInstance
    from airflow.models.trigger import Trigger
    from airflow.utils.session import create_session
    from sqlalchemy import select

    since = datetime.now(UTC) - timedelta(seconds=MISSING_SECONDS)
    statement = (
        select(TaskInstance, Trigger)
        .join(Trigger, TaskInstance.trigger_id == Trigger.id)
        .where(TaskInstance.state == "deferred", Trigger.classpath.startswith(_TRIGGERS))
        .where(TaskInstance.start_date < since)
    )
    found: dict[TableId, str] = {}
    with create_session() as session:
        for task, trigger in session.execute(statement):
            for wait in trigger.kwargs.get("waits") or [trigger.kwargs]:
                if wait.get("lance_conn_id") == conn_id:
                    name = f"task {task.task_id!r} of {task.dag_id!r} in run {task.run_id!r}"
                    found[TableId.parse(wait["table"])] = name
    return found
