"""Waits on a connection: whether the tables exist that tasks wait for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from airflow_provider_lancens.doctor.findings import Finding
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.table_status import MISSING_SECONDS, TableStatus

if TYPE_CHECKING:
    from airflow_provider_lancens.hooks.lance_hook import LanceHook


def check_waits(hook: LanceHook) -> Iterator[Finding]:
    """Check that the tables exist that tasks have been waiting for."""
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
    """Return the tables that tasks have waited for since some minutes, with one task each."""
    from airflow.utils.session import create_session

    from airflow_provider_lancens.doctor.waiting_tasks import waiting_tasks

    latest = datetime.now(UTC) - timedelta(seconds=MISSING_SECONDS)
    with create_session() as session:
        return {
            wait.table: f"task {wait.task_id!r} of {wait.dag_id!r} in run {wait.run_id!r}"
            for wait in waiting_tasks(session, conn_id)
            if wait.since is not None and wait.since < latest
        }
