"""A trigger as one would write it first: a hook and a connection of its own for every look."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import closing
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_provider_lancens.hooks.base import LanceHook


class NaiveTrigger(BaseTrigger):
    """Waits for a version greater than `after`, alone."""

    def __init__(self, table: str, lance_conn_id: str, after: int, interval: float) -> None:
        super().__init__()
        self.table, self.lance_conn_id, self.after, self.interval = table, lance_conn_id, after, interval
        self.looks = 0

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return "", {}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        while True:
            hook = await LanceHook.afor_connection(self.lance_conn_id)
            with closing(hook):
                seen = await asyncio.to_thread(hook.table_version, self.table)
            self.looks += 1
            if seen and seen.version > self.after:
                yield TriggerEvent({"version": seen.version})
                return
            await asyncio.sleep(self.interval)
