"""One wait's end of a shared poll: it holds the newest outcome until the wait takes it."""

from __future__ import annotations

import asyncio

from airflow_provider_lancens.triggers.looks import Outcome

_NOTHING_YET = object()


class Watch:
    """What one wait wants to know of, and what it was told last.

    A wait that is slow skips what was overtaken meanwhile, and hears the newest.
    """

    __slots__ = ("_latest", "_untold", "_waiting", "table")

    def __init__(self, table: str) -> None:
        """Watch a table by its identifier."""
        self.table = table
        self._latest: object = _NOTHING_YET
        self._untold = False
        self._waiting: asyncio.Future[None] | None = None

    def tell(self, outcome: Outcome) -> bool:
        """Hand over what a look came to.

        Returns:
            False where the wait knows that already, so that nothing wakes it.
        """
        if _is_same(self._latest, outcome):
            return False
        self._latest = outcome
        self._untold = True
        if self._waiting and not self._waiting.done():
            self._waiting.set_result(None)
        return True

    async def news(self) -> Outcome:
        """The newest outcome, as soon as it is another one than the last."""
        while not self._untold:
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting
        self._untold = False
        self._waiting = None
        return self._latest  # type: ignore[return-value]


def _is_same(one: object, other: object) -> bool:
    if isinstance(one, Exception) and isinstance(other, Exception):
        return type(one) is type(other) and str(one) == str(other)
    return one is other or one == other
