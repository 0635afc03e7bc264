"""The trigger behind a deferred wait for whichever of several tables advances first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_provider_lancens.triggers.table_version import LanceTableVersionTrigger


class LanceAnyTableTrigger(BaseTrigger):
    """Waits until one of several waits ends, then fires its event, once.

    Args:
        waits: the arguments of a `LanceTableVersionTrigger` for each table.
    """

    def __init__(self, *, waits: Sequence[dict[str, Any]]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.waits = list(waits)

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """What Airflow keeps of the trigger."""
        return f"{type(self).__module__}.{type(self).__qualname__}", {"waits": self.waits}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Wait for the first of them."""
        racing = [asyncio.ensure_future(_event(LanceTableVersionTrigger(**wait))) for wait in self.waits]
        try:
            done, _ = await asyncio.wait(racing, return_when=asyncio.FIRST_COMPLETED)
            yield done.pop().result()
        finally:
            for wait in racing:
                wait.cancel()
            await asyncio.gather(*racing, return_exceptions=True)


async def _event(trigger: LanceTableVersionTrigger) -> TriggerEvent:
    async with aclosing(trigger.run()) as events:
        return await anext(events)
