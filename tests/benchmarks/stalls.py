"""How long an event loop doesn't get to what is due, by the doing of its own process."""

import asyncio
import gc
import time
from typing import Any, Self

BEAT = 0.005


class Stalls:
    """Beats in the running event loop; a beat that comes late tells of a stall.

    A process that waits for its turn on a busy machine stalls too, and nobody's code is to blame: of a late
    beat counts only what the process worked meanwhile. The longest pass of the garbage collector is
    told likewise, for it holds up all threads, whoever made the objects.
    """

    async def __aenter__(self) -> Self:
        self._worst = self._worst_on_the_clock = self._collection = self._collecting_since = 0.0
        gc.callbacks.append(self._on_collection)
        self._task = asyncio.create_task(self._beat())
        return self

    async def __aexit__(self, *_: object) -> None:
        gc.callbacks.remove(self._on_collection)
        self._task.cancel()

    def take(self) -> dict[str, float]:
        """Seconds since last time: of the longest stall, the same on the clock, of the longest collection."""
        found = {
            "loop": round(self._worst, 4),
            "clock": round(self._worst_on_the_clock, 4),
            "collection": round(self._collection, 4),
        }
        self._worst = self._worst_on_the_clock = self._collection = 0.0
        return found

    async def _beat(self) -> None:
        while True:
            clock, worked = time.perf_counter(), time.process_time()
            await asyncio.sleep(BEAT)
            late = time.perf_counter() - clock - BEAT
            self._worst_on_the_clock = max(self._worst_on_the_clock, late)
            self._worst = max(self._worst, min(late, time.process_time() - worked))

    def _on_collection(self, phase: str, info: dict[str, Any]) -> None:
        if phase == "start":
            self._collecting_since = time.process_time()
        else:
            self._collection = max(self._collection, time.process_time() - self._collecting_since)
