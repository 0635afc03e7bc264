"""A naive trigger, for comparison: each poll creates its own hook and connection."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import closing
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_provider_lancens.hooks.lance_hook import LanceHook


class NaiveTrigger(BaseTrigger):
    """Waits for a version greater than `after`, without sharing polls."""

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
                status = await asyncio.to_thread(hook.table_status, self.table)
            self.looks += 1
            if status.version > self.after:
                yield TriggerEvent({"version": status.version})
                return
            await asyncio.sleep(self.interval)
