"""Measures how long a process blocks its own event loop."""

import asyncio
import gc
import time
from typing import Any, Self

BEAT = 0.005


class Stalls:
    """A heartbeat in the running event loop; a late beat indicates a stall.

    On a busy machine, beats are also late because the process waits for the CPU: only the CPU time of the
    process during the delay counts. The longest garbage collection is measured separately, since it stops
    all threads.
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
        """Return the longest stall (CPU and wall-clock seconds) and collection since the last call."""
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
