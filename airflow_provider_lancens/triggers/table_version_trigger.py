"""The triggers of a deferred `LanceTableVersionSensor`."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

from airflow.configuration import conf
from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.hooks.template_args import parse_result_table
from airflow_provider_lancens.namespace.table_status import (
    MISSING_SECONDS,
    TableStatus,
    VersionCondition,
    missing_text,
)
from airflow_provider_lancens.triggers.shared_poller import Subscription, subscribe

SUCCESS = "success"
ERROR = "error"
TIMEOUT = "timeout"
"""Status of an event."""

HEARTBEATS_OF_A_WORKER = 1.5
"""How long a wait lasts at least, as a multiple of the heartbeat interval of Airflow's workers."""

log = logging.getLogger(__name__)


class LanceTableVersionTrigger(BaseTrigger):
    """Waits until a table's version meets the conditions, then fires once.

    It doesn't fire before Airflow knows that the worker that deferred the task has ended, which takes up to
    `[workers] min_heartbeat_interval` (5 seconds). A task that runs again before that is failed by Airflow's
    scheduler, which takes the end of the first worker for the end of the second (apache/airflow#72716).

    Its event is ``{"status": "success", "table", "version", "location"}``, or
    ``{"status": "error", "message"}`` if the wait can never succeed, or ``{"status": "timeout", "message"}``,
    with what was found last.

    Args:
        table: table identifier, ``database$table``.
        lance_conn_id: the Airflow connection; only its id is stored with the trigger, no secrets.
        after_version: the version must be greater than this one.
        min_version: the version must be this one or greater.
        other_than: the version must be another one, greater or not.
        at_location: the location whose version `other_than` is; None is any.
        poll_interval: seconds between two polls.
        min_wait: seconds that the wait lasts at least, such as until a check that failed is repeated.
        until: when the wait ends, in ISO 8601; None if it doesn't.
    """

    def __init__(
        self,
        *,
        table: str,
        lance_conn_id: str,
        after_version: int | None = None,
        min_version: int | None = None,
        other_than: int | None = None,
        at_location: str | None = None,
        poll_interval: float = 60.0,
        min_wait: float = 0.0,
        until: str | None = None,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.table = parse_result_table(table)
        self.lance_conn_id = lance_conn_id
        self.condition = VersionCondition(after_version, min_version, other_than, at_location)
        self.poll_interval = poll_interval
        self.min_wait = min_wait
        self.until = until

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return what Airflow stores of the trigger: scalars only."""
        return (
            f"{type(self).__module__}.{type(self).__qualname__}",
            {
                "table": str(self.table),
                "lance_conn_id": self.lance_conn_id,
                "after_version": self.condition.after_version,
                "min_version": self.condition.min_version,
                "other_than": self.condition.other_than,
                "at_location": self.condition.at_location,
                "poll_interval": self.poll_interval,
                "min_wait": self.min_wait,
                "until": self.until,
            },
        )

    async def run(self) -> AsyncGenerator[TriggerEvent]:
        """Poll until the version meets the conditions."""
        earliest = asyncio.get_running_loop().time() + max(worker_end(), min(self.min_wait, self._left()))
        try:
            with subscribe(self.lance_conn_id, self.table, self.poll_interval) as subscription:
                status = await self._ended(subscription)
        except AirflowFailException as error:
            event: dict[str, Any] = {"status": ERROR, "message": str(error)}
        except TimeoutError:
            event = {"status": TIMEOUT, "message": f"{subscription}; waited for {self.condition}"}
        else:
            event = {
                "status": SUCCESS,
                "table": str(status.table),
                "version": status.version,
                "location": status.location,
            }
        await asyncio.sleep(max(0.0, earliest - asyncio.get_running_loop().time()))
        yield TriggerEvent(event)

    async def _ended(self, subscription: Subscription) -> TableStatus:
        """Wait until the condition holds.

        Raises:
            AirflowFailException: polling the table can never succeed.
            TimeoutError: the wait has timed out.
        """
        async with asyncio.timeout(None if self.until is None else self._left()):
            watching = asyncio.ensure_future(self._warn_if_missing(subscription))
            try:
                status = await subscription.changed()
                while not self.condition.holds(status):
                    status = await subscription.changed()
            finally:
                watching.cancel()
            return status

    def _left(self) -> float:
        """Return the seconds until the wait times out."""
        if self.until is None:
            return math.inf
        return max(0.0, (datetime.fromisoformat(self.until) - datetime.now(UTC)).total_seconds())

    async def _warn_if_missing(self, subscription: Subscription) -> None:
        await asyncio.sleep(MISSING_SECONDS)
        if subscription.is_missing:
            log.warning("%s", missing_text(self.table))


class LanceAnyTableTrigger(BaseTrigger):
    """Waits until one of several waits succeeds, then fires its event, once.

    A wait that can never succeed is logged as a warning, and the others go on. If none is left, the event is
    ``{"status": "error", "message"}`` with all their messages.

    Args:
        waits: the arguments of a `LanceTableVersionTrigger` for each table.
    """

    def __init__(self, *, waits: Sequence[dict[str, Any]]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.waits = [LanceTableVersionTrigger(**wait) for wait in waits]

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return what Airflow stores of the trigger."""
        waits = [wait.serialize()[1] for wait in self.waits]
        return f"{type(self).__module__}.{type(self).__qualname__}", {"waits": waits}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Wait for the first of them that succeeds."""
        racing = {asyncio.ensure_future(_event(wait)) for wait in self.waits}
        messages: list[str] = []
        late: list[str] = []
        try:
            while racing:
                done, racing = await asyncio.wait(racing, return_when=asyncio.FIRST_COMPLETED)
                for payload in (wait.result().payload for wait in done):
                    if payload["status"] == SUCCESS:
                        yield TriggerEvent(payload)
                        return
                    if payload["status"] == TIMEOUT:
                        late.append(payload["message"])
                        continue
                    messages.append(payload["message"])
                    log.warning("%s; still waiting for the other tables", messages[-1])
            status = TIMEOUT if late else ERROR
            yield TriggerEvent({"status": status, "message": ". ".join(late or messages)})
        finally:
            for wait in racing:
                wait.cancel()
            await asyncio.gather(*racing, return_exceptions=True)


def worker_end() -> float:
    """Return the seconds within which Airflow learns that the worker that deferred a task has ended."""
    interval: int = conf.getint("workers", "min_heartbeat_interval", fallback=5)
    return interval * HEARTBEATS_OF_A_WORKER


async def _event(trigger: LanceTableVersionTrigger) -> TriggerEvent:
    async with aclosing(trigger.run()) as events:
        return await anext(events)
