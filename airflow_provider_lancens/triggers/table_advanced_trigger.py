"""The trigger of assets that are Lance tables: DAGs run when the table advances."""

from __future__ import annotations

from collections.abc import AsyncIterator, Hashable
from functools import partial
from typing import Any

from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from airflow_provider_lancens.hooks.template_args import parse_result_table
from airflow_provider_lancens.namespace.table_status import TableStatus
from airflow_provider_lancens.triggers.event_stream import (
    Cursor,
    TableEvent,
    TableEventStream,
    wait_for_data_change,
)


class LanceTableAdvancedTrigger(BaseEventTrigger):
    """Fires whenever a table has advanced, for an `AssetWatcher`; `assets.watched_table` creates both.

    Its event is ``{"table", "previous_version", "version", "location"}``. Several versions between two polls
    result in one event, for the newest. ``previous_version`` is the version of the previous event, so that
    events cover all versions; None for the first event, and for the first after the table was dropped and
    recreated, or moved to another location.

    Each version is covered by an event at least once. With Airflow 3.3's state store, the version of the last
    event is stored once that event is in Airflow's database, so that a restart continues from there, and
    repeats that event at worst. Older Airflow versions have no such store: each start of the trigger emits
    the newest version, with ``previous_version`` None or, with `after_version`, that version.

    Args:
        table: table identifier, ``database$table``.
        lance_conn_id: the Airflow connection; only its id is stored with the trigger, no secrets.
        cursor: any text that distinguishes this trigger from the trigger of another asset on the same table.
            Airflow merges triggers with equal arguments into one, which then can't store a version.
        after_version: if no version is stored, ignore versions up to this one, which is the
            ``previous_version`` of the first event. Without a state store, that is so at each start, so that
            the first versions of a table that was created again are missed.
        poll_interval: seconds between two polls.
        data_only: ignore versions that compaction, indexing or configuration created. They cause no event, so
            that maintenance starts no DAG; the ``previous_version`` of the next event precedes them.
    """

    def __init__(
        self,
        *,
        table: str,
        lance_conn_id: str,
        cursor: str = "",
        after_version: int | None = None,
        poll_interval: float = 60.0,
        data_only: bool = True,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.table = parse_result_table(table)
        self.lance_conn_id = lance_conn_id
        self.cursor = cursor
        self.after_version = after_version
        self.poll_interval = poll_interval
        self.data_only = data_only

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return what Airflow stores of the trigger: scalars only."""
        return (
            f"{type(self).__module__}.{type(self).__qualname__}",
            {
                "table": str(self.table),
                "lance_conn_id": self.lance_conn_id,
                "cursor": self.cursor,
                "after_version": self.after_version,
                "poll_interval": self.poll_interval,
                "data_only": self.data_only,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Emit each advance; used if Airflow has no shared streams or no state store."""
        async for event in self.filter_shared_stream(self._settled_stream()):
            yield event

    def shared_stream_key(self) -> Hashable | None:
        """Return a key per trigger, so that Airflow confirms stored events; polls are shared anyway."""
        if getattr(self, "asset_state_store", None) is None:
            return None
        path, arguments = self.serialize()
        return (path, *arguments.values())

    @classmethod
    def create_shared_stream_producer(cls, kwargs: dict[str, Any]) -> Any:
        """Return the table's event stream, which Airflow notifies when events are stored."""
        table = parse_result_table(kwargs["table"])
        return TableEventStream(kwargs["lance_conn_id"], table, kwargs["poll_interval"])

    async def filter_shared_stream(self, shared_stream: AsyncIterator[Any]) -> AsyncIterator[TriggerEvent]:
        """Convert table events that are advances to trigger events."""
        cursor = Cursor(getattr(self, "asset_state_store", None), self.table)
        stored = await cursor.read()
        location = stored.location if stored else None
        emitted = known = stored.version if stored else self.after_version
        ignored_to = None if stored else self.after_version
        async for change in shared_stream:
            status: TableStatus = change.status
            if status.denial:
                continue  # whether it still exists isn't known
            if not status.version or location not in (None, status.location):
                # The next versions are of another table, or of this table registered again.
                emitted = known = ignored_to = None
            location = status.location
            if status.version and status.version != known and status.version > (ignored_to or 0):
                if known is not None and status.version < known:
                    emitted = None  # another table with the same name, which starts again
                counts = await self._counts(status, known)
                if counts is None:
                    continue
                known = status.version
                if not counts:
                    continue
                event = _event(status, emitted)
                emitted, ignored_to = status.version, None
                change.on_settled = partial(cursor.write, status)
                yield event

    async def _counts(self, status: TableStatus, known: int | None) -> bool | None:
        """Return whether a version after a known one causes an event; None if it was dropped meanwhile."""
        if not self.data_only or known is None or status.version < known:
            return True
        return await wait_for_data_change(self.lance_conn_id, status, known)

    async def _settled_stream(self) -> AsyncIterator[TableEvent]:
        async for change in TableEventStream(self.lance_conn_id, self.table, self.poll_interval).stream():
            yield change
            await change.settle()  # the next change is requested: this one's event has been emitted


def _event(status: TableStatus, emitted: int | None) -> TriggerEvent:
    event = {
        "table": str(status.table),
        "previous_version": emitted,
        "version": status.version,
        "location": status.location,
    }
    return TriggerEvent(event)
