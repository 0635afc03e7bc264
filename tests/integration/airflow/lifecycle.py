"""Runs a sensor's task to its end in one process, as worker, scheduler and triggerer do."""

import asyncio
import importlib
import json
import time
from contextlib import aclosing
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from airflow.exceptions import AirflowRescheduleException
from airflow.sdk import BaseSensorOperator, timezone

try:
    from airflow.sdk.exceptions import TaskDeferred
except ImportError:  # Airflow 3.1
    from airflow.exceptions import TaskDeferred

PATIENCE = 300
"""Seconds that a wait may take on a busy machine until it has failed."""
MODES = {
    "poke": {"deferrable": False, "mode": "poke"},
    "reschedule": {"deferrable": False, "mode": "reschedule"},
    "deferrable": {"deferrable": True},
}


class Attempt:
    """A task instance with what our tasks use: the time of its first deferral, and XComs."""

    dag_id, run_id, task_id, map_index, max_tries = "dag", "run", "wait", -1, 0
    try_number = 1

    def __init__(self, earlier: Any = None) -> None:
        self.first_rescheduled: datetime | None = None
        self.earlier = earlier
        """What the same task returned in an earlier run."""
        self.pushed: dict[str, Any] = {}

    def xcom_push(self, key: str, value: Any) -> None:
        self.pushed[key] = value

    def xcom_pull(self, task_ids: str, *, include_prior_dates: bool, map_indexes: int) -> Any:
        assert include_prior_dates
        return self.earlier

    def get_first_reschedule_date(self, context: Any) -> datetime | None:
        return self.first_rescheduled


def run_to_its_end(sensor: BaseSensorOperator, attempt: Attempt | None = None) -> Any:
    """Run a sensor, reschedule or defer and resume it, and return its XCom or raise its error."""
    attempt = attempt or Attempt()
    context: Any = {"ti": attempt}
    go_on = partial(sensor.execute, context)
    while True:
        try:
            return go_on()
        except AirflowRescheduleException as later:
            attempt.first_rescheduled = attempt.first_rescheduled or timezone.utcnow()
            time.sleep(max(0.0, (later.reschedule_date - timezone.utcnow()).total_seconds()))
        except TaskDeferred as deferred:
            go_on = partial(sensor.resume_execution, *asyncio.run(_awaited(deferred)), context)


async def _awaited(deferred: TaskDeferred) -> tuple[str, dict[str, Any]]:
    # The worker reports only the standard type to its supervisor, not pendulum's.
    assert type(deferred.timeout) is timedelta
    try:
        async with asyncio.timeout(deferred.timeout.total_seconds()):
            async with aclosing(_made_again(deferred.trigger).run()) as events:
                event = await anext(events)
    except TimeoutError:
        return "__fail__", {"error": "Trigger timeout"}
    return deferred.method_name, {"event": event.payload, **(deferred.kwargs or {})}


def _made_again(trigger: Any) -> Any:
    path, arguments = trigger.serialize()
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)(**json.loads(json.dumps(arguments)))
