"""The trigger behind an asset that is a Lance table: DAGs run when the table advances."""

from __future__ import annotations

from collections.abc import AsyncIterator, Hashable
from functools import partial
from typing import Any

from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from airflow_provider_lancens.hooks.versions import TableVersion
from airflow_provider_lancens.triggers.cursor import Cursor
from airflow_provider_lancens.triggers.news import News, TableNews


class LanceTableAdvancedTrigger(BaseEventTrigger):
    """Fires whenever a table has advanced, for an `AssetWatcher`; `assets.watched_table` makes both.

    Its event is ``{"table", "previous_version", "version"}``. Several versions between two looks make one
    event, of the newest. ``previous_version`` is the version of the event before, so that no version lies in
    no event; None for the first one, and for the first of a table that was dropped and made again.

    Each version is told at least once. With Airflow 3.3's state store, the version told last is noted once
    the event is in Airflow's database, so that a restart goes on from there, and tells that one again at
    worst. Older Airflows keep no such note: each start of the trigger tells the newest version, with
    ``previous_version`` None.

    Args:
        table: its identifier, ``database$table``.
        lance_conn_id: the Airflow connection; all that is kept of it, so no secret is stored.
        cursor: a word that tells this trigger from that of another asset on the same table. Airflow makes
            triggers with equal arguments one, which then has no place to note a version in.
        after_version: where nothing is noted, versions up to this one are no news.
        poll_interval: seconds between two looks.
    """

    def __init__(
        self,
        *,
        table: str,
        lance_conn_id: str,
        cursor: str = "",
        after_version: int | None = None,
        poll_interval: float = 60.0,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.table = table
        self.lance_conn_id = lance_conn_id
        self.cursor = cursor
        self.after_version = after_version
        self.poll_interval = poll_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """What Airflow keeps of the trigger: scalars only."""
        return (
            f"{type(self).__module__}.{type(self).__qualname__}",
            {
                "table": self.table,
                "lance_conn_id": self.lance_conn_id,
                "cursor": self.cursor,
                "after_version": self.after_version,
                "poll_interval": self.poll_interval,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Tell of each advance: where Airflow has no shared streams, or nothing to note a version in."""
        async for event in self.filter_shared_stream(self._settled_stream()):
            yield event

    def shared_stream_key(self) -> Hashable | None:
        """A stream of its own, for Airflow's word of when an event is stored; polls are shared anyway."""
        if getattr(self, "asset_state_store", None) is None:
            return None
        path, arguments = self.serialize()
        return (path, *arguments.values())

    @classmethod
    def create_shared_stream_producer(cls, kwargs: dict[str, Any]) -> Any:
        """What is heard of the table, and learns when that was stored."""
        return TableNews(kwargs["lance_conn_id"], kwargs["table"], kwargs["poll_interval"])

    async def filter_shared_stream(self, shared_stream: AsyncIterator[Any]) -> AsyncIterator[TriggerEvent]:
        """Make events of the news that tell of an advance."""
        cursor = Cursor(getattr(self, "asset_state_store", None), self.table)
        noted = await cursor.read()
        told, quiet_to = (self.after_version, self.after_version) if noted is None else (noted, None)
        async for news in shared_stream:
            seen: TableVersion | None = news.seen
            if seen is None:
                told = quiet_to = None  # what comes after is another table, or this one registered anew
            elif seen.version != told and (quiet_to is None or seen.version > quiet_to):
                event = _event(seen, told)
                told, quiet_to = seen.version, None
                news.on_settled = partial(cursor.write, told)
                yield event

    async def _settled_stream(self) -> AsyncIterator[News]:
        async for news in TableNews(self.lance_conn_id, self.table, self.poll_interval).stream():
            yield news
            await news.settle()  # the next one is asked for: the event of this one is out


def _event(seen: TableVersion, told: int | None) -> TriggerEvent:
    # A version that went backwards is another table's by the same name: it begins anew.
    previous = told if told is not None and told < seen.version else None
    return TriggerEvent({"table": seen.table, "previous_version": previous, "version": seen.version})
