"""The Lance tables that a DAG run or one of its tasks used."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from airflow.models.asset import AssetEvent, AssetModel
from airflow.models.renderedtifields import RenderedTaskInstanceFields
from airflow.models.xcom import XComModel
from airflow.utils.session import create_session
from sqlalchemy import select

from airflow_provider_lancens.assets.table import SCHEME, LanceTable
from airflow_provider_lancens.doctor.waiting_tasks import valid_tables
from airflow_provider_lancens.ui.known_connections import KnownConnections

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

_RETURNED = "return_value"


def tables_of(dag_id: str, run_id: str, task_id: str | None) -> list[dict[str, Any]]:
    """Return the tables that a run used.

    Args:
        dag_id: the DAG, which the user may read.
        run_id: its run.
        task_id: one task of it; None for all.

    Returns:
        Each with the connection ``conn``, the ``table``, the ``task_id``, and the ``version`` that the task
        ``made`` or ``returned``, or that was there before if its write was ``skipped``; or None.
    """
    with create_session() as session:
        used = list(_named(session, dag_id, run_id, task_id))
        returned = _returned(session, dag_id, run_id, task_id)
        written = list(_made(session, dag_id, run_id, task_id))
    entries = {(entry["conn"], entry["table"], entry["task_id"]): entry for entry in used}
    known = KnownConnections.read() if written else None
    for entry in written:
        if known is not None:
            entry["conn"] = _connection_of(entry, known, entries)
        entries[entry["conn"], entry["table"], entry["task_id"]] = entry
    for (task, table), (version, what) in returned.items():
        for key, entry in entries.items():
            if key[1:] == (table, task) and (what == "skipped" or entry["what"] != "made"):
                entry |= {"version": version, "what": what}
    return sorted(entries.values(), key=lambda entry: (entry["task_id"], entry["table"]))


def _of_run(model: Any, dag_id: str, run_id: str, task_id: str | None, prefix: str = "") -> list[Any]:
    wanted = {"dag_id": dag_id, "run_id": run_id, "task_id": task_id}
    return [getattr(model, prefix + name) == value for name, value in wanted.items() if value is not None]


def _named(session: Session, dag_id: str, run_id: str, task_id: str | None) -> Iterator[dict[str, Any]]:
    """Yield the tables that tasks name in their template fields."""
    model = RenderedTaskInstanceFields
    statement = select(model.task_id, model.rendered_fields).where(*_of_run(model, dag_id, run_id, task_id))
    for task, fields in session.execute(statement):
        if "lance_conn_id" in fields:
            for table in valid_tables(fields):
                yield _entry(str(fields["lance_conn_id"]), str(table), task)


def _made(session: Session, dag_id: str, run_id: str, task_id: str | None) -> Iterator[dict[str, Any]]:
    """Yield the versions that tasks emitted events for, with the assets' authority as ``conn``."""
    statement = (
        select(AssetModel.uri, AssetEvent.source_task_id, AssetEvent.extra)
        .join(AssetModel, AssetModel.id == AssetEvent.asset_id)
        .where(AssetModel.uri.startswith(f"{SCHEME}://"))
        .where(*_of_run(AssetEvent, dag_id, run_id, task_id, "source_"))
        .order_by(AssetEvent.id)
    )
    for uri, task, extra in session.execute(statement):
        asset = LanceTable.parse(uri)
        version = (extra or {}).get("version")
        yield {**_entry(asset.authority, str(asset.table), task), "version": version, "what": "made"}


def _connection_of(
    entry: Mapping[str, Any], known: KnownConnections, entries: Mapping[tuple[str, str, str], Any]
) -> str:
    """Return a connection with an asset's authority, preferably the connection that the task names."""
    sharing = known.sharing(entry["conn"])
    named = (conn_id for conn_id in sharing if (conn_id, entry["table"], entry["task_id"]) in entries)
    return str(next(named, sharing[0] if sharing else entry["conn"]))


def _returned(
    session: Session, dag_id: str, run_id: str, task_id: str | None
) -> dict[tuple[str, str], tuple[int, str]]:
    """Return the versions in the return values of tasks, and what the task did, by task and table."""
    statement = select(XComModel.task_id, XComModel.value).where(
        XComModel.key == _RETURNED, *_of_run(XComModel, dag_id, run_id, task_id)
    )
    return {
        (task, str(table)): (result["version"], _what(result))
        for task, value in session.execute(statement)
        for result in _results(value)
        for table in valid_tables(result)
    }


def _what(result: Mapping[str, Any]) -> str:
    return "skipped" if result.get("outcome") == "skipped" else "returned"


def _results(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return
    if not isinstance(value, dict):
        return
    for candidate in (value, *value.values()):
        if isinstance(candidate, dict) and isinstance(candidate.get("version"), int) and "table" in candidate:
            yield candidate


def _entry(conn_id: str, table: str, task_id: str) -> dict[str, Any]:
    return {"conn": conn_id, "table": table, "task_id": task_id, "version": None, "what": "used"}
