"""Which version of a table an asset has been told of, kept by Airflow where it keeps such things."""

from __future__ import annotations

import logging
from typing import Any

log = logging.getLogger(__name__)


class Cursor:
    """An asset's place in a table's versions.

    Airflow 3.3 keeps it in the asset's state store, over restarts. Older ones have none: there it is kept
    for as long as the trigger runs.

    Args:
        store: the trigger's ``asset_state_store``, None where there is none.
        table: the table's identifier.
    """

    def __init__(self, store: Any, table: str) -> None:
        self._store = store
        self._key = f"lance_version.{table.replace('$', '.')}"

    async def read(self) -> int | None:
        """The version that was told last; None where none was, or nobody knows.

        Raises:
            ValueError: several assets share the trigger, so that it is nobody's.
        """
        if self._store is None:
            return None
        try:
            stored = await self._store.aget(self._key)
        except ValueError as error:
            raise ValueError(
                "several assets are watched by triggers with the same arguments, which Airflow makes one "
                "trigger: give each LanceTableAdvancedTrigger a cursor= of its own, such as its asset's name"
            ) from error
        return None if stored is None else int(stored)

    async def write(self, version: int) -> None:
        """Keep a version; where that fails, the next restart tells of it again."""
        if self._store is None:
            return
        try:
            await self._store.aset(self._key, version)
        except Exception:
            # The event is out already. Ending the watcher here would lose the ones after it.
            log.exception("Version %d was told and couldn't be noted: a restart may tell it again", version)
