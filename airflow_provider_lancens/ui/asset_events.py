"""The task instances that made a table's versions, by the events of its asset."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.models.asset import AssetEvent, AssetModel
from airflow.utils.session import create_session
from sqlalchemy import func, select

from airflow_provider_lancens.ui.access import Access

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

_EVENTS = 5000
"""Most events that are read for a page of versions: several watchers may have an event for each version."""
_LATER = timedelta(hours=1)
"""An event follows its version once the task has ended, and a watcher's once it has polled."""
_EARLIER = timedelta(minutes=1)
"""How much clocks may differ."""


def producing_tasks(uri: str, first: datetime, last: datetime, access: Access) -> dict[int, dict[str, Any]]:
    """Return the task instance that made each version, as far as there are events and the user may see it.

    Args:
        uri: the table's asset.
        first: when the oldest of the versions was made.
        last: when the newest was.
        access: of the user.

    Returns:
        By version, the ``dag_id``, ``run_id``, ``task_id`` and ``map_index``.
    """
    statement = (
        select(AssetEvent)
        .join(AssetModel, AssetModel.id == AssetEvent.asset_id)
        .where(AssetModel.uri == uri, AssetEvent.source_run_id.is_not(None))
        .where(AssetEvent.timestamp.between(first - _EARLIER, last + _LATER))
        .order_by(AssetEvent.id.desc())
        .limit(_EVENTS)
    )
    with create_session() as session:
        events = list(session.scalars(statement))
        tasks = {_version_of(event): _task(event) for event in events}
    return {
        version: task
        for version, task in tasks.items()
        if version is not None and task["dag_id"] in access.dag_ids
    }


def newest_events(uris: Collection[str], access: Access) -> dict[str, dict[str, Any]]:
    """Return the newest event of each asset, by its URI: its time, version, and task if that may be seen."""
    with create_session() as session:
        return {uri: _event(event, access) for uri, event in _newest(session, uris)}


def consumers(uri: str, access: Access) -> list[str]:
    """Return the ids of the DAGs that are scheduled on a table's asset, as far as the user may see them."""
    from airflow.models.asset import DagScheduleAssetReference

    statement = (
        select(DagScheduleAssetReference.dag_id)
        .join(AssetModel, AssetModel.id == DagScheduleAssetReference.asset_id)
        .where(AssetModel.uri == uri)
    )
    with create_session() as session:
        return sorted(access.dag_ids.intersection(session.scalars(statement)))


def _newest(session: Session, uris: Collection[str]) -> list[tuple[str, AssetEvent]]:
    last = (
        select(func.max(AssetEvent.id))
        .join(AssetModel, AssetModel.id == AssetEvent.asset_id)
        .where(AssetModel.uri.in_(uris))
        .group_by(AssetEvent.asset_id)
    )
    statement = (
        select(AssetModel.uri, AssetEvent)
        .join(AssetModel, AssetModel.id == AssetEvent.asset_id)
        .where(AssetEvent.id.in_(last))
    )
    return [(uri, event) for uri, event in session.execute(statement)]


def _event(event: AssetEvent, access: Access) -> dict[str, Any]:
    task = _task(event)
    seen = task if task["dag_id"] in access.dag_ids else None
    return {"time": event.timestamp.isoformat(), "version": _version_of(event), "task": seen}


def _version_of(event: AssetEvent) -> int | None:
    extra = event.extra or {}
    payload = extra.get("payload")  # a watcher's event
    version = extra.get("version", payload.get("version") if isinstance(payload, dict) else None)
    return version if isinstance(version, int) else None


def _task(event: AssetEvent) -> dict[str, Any]:
    return {
        "dag_id": event.source_dag_id,
        "run_id": event.source_run_id,
        "task_id": event.source_task_id,
        "map_index": event.source_map_index if event.source_map_index is not None else -1,
    }
