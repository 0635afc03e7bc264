"""Task instances that wait for a version of a table."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from airflow.utils.session import create_session

from airflow_provider_lancens.doctor.waiting_tasks import WaitingTask, waiting_tasks
from airflow_provider_lancens.hooks.lance_hook import LanceHook
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.table_status import TableStatus
from airflow_provider_lancens.ui.access import Access


def list_waits(conn_ids: Collection[str], table: str, access: Access) -> dict[str, Any]:
    """Return the task instances that wait for a table, the longest wait first.

    Args:
        conn_ids: the connections that they may wait through.
        table: table identifier.
        access: of the user.

    Returns:
        ``waits``, each with its task instance, ``state``, ``since``, ``until`` and what it waits ``for``, and
        the number of ``hidden`` ones, of DAGs that the user may not see.
    """
    awaited = TableId.parse(table)
    with create_session() as session:
        entries = [_entry(wait) for wait in waiting_tasks(session, conn_ids) if wait.table == awaited]
    seen = [wait for wait in entries if wait["dag_id"] in access.dag_ids]
    return {"waits": sorted(seen, key=lambda wait: wait["since"] or ""), "hidden": len(entries) - len(seen)}


def list_missing(hook: LanceHook, access: Access) -> dict[str, Any]:
    """Return the tables that don't exist although tasks wait for them, such as misspelled ones.

    Args:
        hook: hook of the connection that they wait through.
        access: of the user; waits of DAGs that the user may not see are left out.

    Returns:
        ``tables``, each with its ``table`` identifier and the ``wait`` that has lasted longest.
    """
    longest: dict[TableId, dict[str, Any]] = {}
    with create_session() as session:
        for wait in waiting_tasks(session, [hook.lance_conn_id]):
            entry = _entry(wait)
            if entry["dag_id"] in access.dag_ids:
                known = longest.setdefault(wait.table, entry)
                longest[wait.table] = min(known, entry, key=lambda wait: wait["since"] or "")
    statuses = hook.poll_tables(list(longest)) if longest else {}
    missing = [
        {"table": str(table), "wait": longest[table]}
        for table, status in statuses.items()
        if isinstance(status, TableStatus) and status.location is None
    ]
    return {"tables": sorted(missing, key=lambda wait: wait["table"])}


def _entry(wait: WaitingTask) -> dict[str, Any]:
    return {
        "dag_id": wait.dag_id,
        "run_id": wait.run_id,
        "task_id": wait.task_id,
        "map_index": wait.map_index,
        "state": str(wait.state),
        "since": _iso(wait.since),
        "for": wait.condition,
        "until": _iso(wait.until),
    }


def _iso(time: Any) -> str | None:
    return time.isoformat() if time else None
