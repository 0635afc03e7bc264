"""What a watcher hears of a table, and when it may forget that it heard it.

The other half of `LanceTableAdvancedTrigger`: it has the shape of Airflow 3.3's `SharedStreamProducer`, and
doesn't inherit from it, since older ones don't have it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from airflow.providers.common.compat.sdk import AirflowException

from airflow_provider_lancens.hooks.versions import TableVersion
from airflow_provider_lancens.triggers.polling import sightings

log = logging.getLogger(__name__)

_PAUSE_AFTER_FAILURE = 60.0


@dataclass(slots=True)
class News:
    """A table as a look found it otherwise than before."""

    seen: TableVersion | None
    """None where the table isn't there, or no version of it."""
    on_settled: Callable[[], Awaitable[None]] | None = None
    """What is to be done once the event that came of it can't be lost any more."""

    async def settle(self) -> None:
        """Do it."""
        if self.on_settled:
            await self.on_settled()


class TableNews:
    """News of one table, without end.

    Args:
        lance_conn_id: the Airflow connection.
        table: its identifier.
        poll_interval: seconds between two looks.
    """

    def __init__(self, lance_conn_id: str, table: str, poll_interval: float) -> None:
        self._lance_conn_id = lance_conn_id
        self._table = table
        self._poll_interval = poll_interval

    async def stream(self) -> AsyncIterator[News]:
        """Each piece of news; a look that can't be answered is logged, and others come after it."""
        while True:
            try:
                looks = sightings(self._lance_conn_id, self._table, self._poll_interval)
                async with aclosing(looks):
                    async for seen in looks:
                        yield News(seen)
            except AirflowException as error:
                # No task fails here that somebody would look at and clear, so it has to heal by itself.
                log.error("%s; the watcher goes on", error)
                await asyncio.sleep(max(self._poll_interval, _PAUSE_AFTER_FAILURE))

    async def open_stream(self) -> AsyncIterator[tuple[News, News]]:
        """The same as Airflow's shared streams take it: what is broadcast, what `advance` gets back."""
        async for news in self.stream():
            yield news, news

    async def advance(self, batch: Sequence[Any]) -> None:
        """Settle what Airflow has stored, in the order in which it came."""
        for item in batch:
            if item.outcome.is_clean:
                await item.broker_payload.settle()

    def get_advance_lane(self, broker_payload: News) -> None:
        """All in one order."""

    async def aclose(self) -> None:
        """Nothing is held here: the stream lets its poll go itself."""
