"""The trigger behind a deferred `LanceTableVersionSensor`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from airflow.providers.common.compat.sdk import AirflowFailException
from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_provider_lancens.hooks.versions import VersionCondition
from airflow_provider_lancens.triggers.polling import sightings

SEEN = "seen"
FAILED = "failed"


class LanceTableVersionTrigger(BaseTrigger):
    """Waits until a table has the wanted version, then fires once.

    Its event is ``{"status": "seen", "table", "version", "location"}``, or
    ``{"status": "failed", "message"}`` where the wait can never end well.

    Args:
        table: its identifier, ``database$table``.
        lance_conn_id: the Airflow connection; all that is kept of it, so no secret is stored.
        after_version: the version has to be greater than this one.
        min_version: the version has to be this one or greater.
        other_than: the version has to be another one, greater or not.
        poll_interval: seconds between two looks.
    """

    def __init__(
        self,
        *,
        table: str,
        lance_conn_id: str,
        after_version: int | None = None,
        min_version: int | None = None,
        other_than: int | None = None,
        poll_interval: float = 60.0,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.table = table
        self.lance_conn_id = lance_conn_id
        self.condition = VersionCondition(after_version, min_version, other_than)
        self.poll_interval = poll_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """What Airflow keeps of the trigger: scalars only."""
        return (
            f"{type(self).__module__}.{type(self).__qualname__}",
            {
                "table": self.table,
                "lance_conn_id": self.lance_conn_id,
                "after_version": self.condition.after_version,
                "min_version": self.condition.min_version,
                "other_than": self.condition.other_than,
                "poll_interval": self.poll_interval,
            },
        )

    async def run(self) -> AsyncGenerator[TriggerEvent]:
        """Look until the wanted version is there."""
        try:
            async with aclosing(sightings(self.lance_conn_id, self.table, self.poll_interval)) as looks:
                async for seen in looks:
                    if seen is not None and self.condition.holds(seen):
                        yield TriggerEvent(
                            {
                                "status": SEEN,
                                "table": seen.table,
                                "version": seen.version,
                                "location": seen.location,
                            }
                        )
                        return
        except AirflowFailException as error:
            yield TriggerEvent({"status": FAILED, "message": str(error)})
