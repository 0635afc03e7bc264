"""Waiting until a table's version advances."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import pendulum
from airflow.providers.common.compat.sdk import (
    AirflowFailException,
    AirflowSensorTimeout,
    BaseSensorOperator,
    PokeReturnValue,
)

from airflow_provider_lancens.hooks.arguments import check_choice
from airflow_provider_lancens.hooks.base import LanceHook
from airflow_provider_lancens.hooks.datasets import data_changed, pin, tag_name
from airflow_provider_lancens.hooks.errors import LanceRetryableError
from airflow_provider_lancens.hooks.versions import TableVersion
from airflow_provider_lancens.links import LanceGlueTableLink, LanceS3Link
from airflow_provider_lancens.sensors.deferral import default_deferrable
from airflow_provider_lancens.sensors.wanted import Bound, Wanted, read_seen, read_tables, read_wanted

if TYPE_CHECKING:
    from airflow.sdk import Context

_ALL, _ANY = "all", "any"
Answer = TypeVar("Answer")
Looks = Mapping[str, TableVersion | None]
"""What a look found, by table."""


class LanceTableVersionSensor(BaseSensorOperator):
    """Wait until a table, or several, have the wanted version.

    With neither bound, that is another version than the same task handed on in the run before, by
    logical date; the first time, any version at all.

    Poke, reschedule and deferrable mode end alike. A table that isn't there yet, or has no data set yet,
    means wait, and so does a metastore that doesn't answer for a while; `timeout` bounds the wait. What
    can never succeed, such as denied access or a name that no table can have, fails the task for good,
    or skips it with ``soft_fail``.

    Its XCom is ``{"table": str, "version": int, "previous_version": int | None, "location": str}``, and
    with `pin` also ``"tag": str``: the newest version when the wait ended, and the one it was to follow.
    Each key is pushed as an XCom of its own too, so that another sensor can take
    ``after_version=wait.output["version"]``. For a list of tables it holds such a dictionary for each
    table that has a version, by the table's identifier.

    Args:
        table: its identifier, ``database$table``, or a list of these. Templated.
        after_version: the version has to be greater than this one. Templated: digits, ``None`` and
            ``""`` are understood, so that another task's XCom can be given. For a list of tables, a
            dictionary by table may be given too.
        min_version: the version has to be this one or greater. Templated likewise.
        wait_for: of a list, ``all`` tables or ``any``.
        data_only: let versions not count that compaction, indexing or configuration made.
        pin: tag the version that is handed on in Lance, so that no clean-up takes it away before
            `LanceReleaseVersionOperator` takes the tag away.
        lance_conn_id: a connection of any of this provider's types. Templated.
        deferrable: wait in the triggerer, after a first look in the worker; where None, as Airflow's
            ``operators.default_deferrable`` says, and yes where nobody set it.
    """

    template_fields: Sequence[str] = ("table", "after_version", "min_version", "lance_conn_id")
    operator_extra_links = (LanceGlueTableLink(), LanceS3Link())

    def __init__(
        self,
        *,
        table: str | Sequence[str],
        after_version: Bound = None,
        min_version: Bound = None,
        wait_for: Literal["all", "any"] = "all",
        data_only: bool = False,
        pin: bool = False,
        lance_conn_id: str = "lance_hive2_default",
        deferrable: bool | None = None,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("multiple_outputs", True)
        super().__init__(**kwargs)
        self.table = table
        self.after_version = after_version
        self.min_version = min_version
        self.wait_for = check_choice("wait_for", wait_for, (_ALL, _ANY))
        self.data_only = data_only
        self.pin = pin
        self.lance_conn_id = lance_conn_id
        self.deferrable = default_deferrable() if deferrable is None else deferrable

    def poke(self, context: Context) -> PokeReturnValue | bool:
        """Look once. A deferrable sensor that has to wait defers from here.

        Deferring inside the base class's loop leaves ``soft_fail`` and its like to the base class, so
        that they mean the same in every mode.

        Raises:
            AirflowFailException: an argument can't be what it is, or no look will ever be answered.
        """
        result = self._look_once(context, self._deadline_from_now())
        return False if result is None else PokeReturnValue(is_done=True, xcom_value=result)

    def execute_complete(
        self, context: Context, event: Mapping[str, Any], deadline: str | None = None
    ) -> dict[str, Any] | None:
        """Look again where the trigger fired, and decide as a poke does: it may have to wait on.

        Args:
            context: Airflow's.
            event: the trigger's.
            deadline: when the wait's time is over, in ISO 8601; None from ``dag.test()``, which resumes a
                task without what it handed over, and then the time starts anew.

        Raises:
            AirflowFailException: the wait could never end well.
            AirflowSensorTimeout: it has to wait on, and its time is over.
        """
        if event["status"] != "seen":
            raise AirflowFailException(event["message"])
        return self._look_once(
            context, datetime.fromisoformat(deadline) if deadline else self._deadline_from_now()
        )

    def _deadline_from_now(self) -> datetime:
        return pendulum.now("UTC") + timedelta(seconds=self.timeout)

    @cached_property
    def hook(self) -> LanceHook:
        """The hook that the connection's type asks for."""
        return LanceHook.for_connection(self.lance_conn_id)

    def _look_once(self, context: Context, deadline: datetime) -> dict[str, Any] | None:
        wanted = read_wanted(
            read_tables(self.table), self.after_version, self.min_version, lambda: self._seen_before(context)
        )
        # Until the next poke, an idle connection would hold a thread of the metastore for nothing.
        with closing(self.hook) as hook:
            looks = {one.table: self._ask(hook.table_version, one.table) for one in wanted}
            waiting = [one for one in wanted if not self._is_fulfilled(one, looks[one.table])]
            if not waiting or (self.wait_for == _ANY and len(waiting) < len(wanted)):
                result = self._ask(self._result, wanted, looks, context)
                if result is not None:
                    return result
        for one in waiting:
            found = _version_text(looks[one.table])
            self.log.info("Table %s is at %s; waiting for %s", one.table, found, one.condition)
        if self.deferrable:
            self._defer(self._waits(waiting or wanted, looks), deadline)
        return None

    def _seen_before(self, context: Context) -> dict[str, int]:
        # Airflow clears a task's own XCom when it starts anew: what comes is an earlier run's.
        task = context["ti"]
        xcom = task.xcom_pull(
            task_ids=self.task_id, include_prior_dates=True, map_indexes=getattr(task, "map_index", None)
        )
        return read_seen(xcom)

    def _is_fulfilled(self, wanted: Wanted, seen: TableVersion | None) -> bool:
        if seen is None or not wanted.condition.holds(seen):
            return False
        if not self.data_only:
            return True
        return bool(self._ask(data_changed, self.hook, wanted.table, wanted.data_since(seen)))

    def _result(self, wanted: Sequence[Wanted], looks: Looks, context: Context) -> dict[str, Any]:
        results = {one.table: one.result(seen) for one in wanted if (seen := looks[one.table])}
        for table, result in results.items():
            if self.pin:
                result["tag"] = _tag(context)
                pin(self.hook, table, result["version"], result["tag"])
            self.log.info("Table %s is at version %d", table, result["version"])
        return results[wanted[0].table] if isinstance(self.table, str) else results

    def _ask(self, question: Callable[..., Answer], *arguments: Any) -> Answer | None:
        try:
            return question(*arguments)
        except LanceRetryableError as error:
            self.log.warning("%s; the wait goes on", error)
            return None

    def _waits(self, waiting: Sequence[Wanted], looks: Looks) -> list[dict[str, Any]]:
        # Of all tables the first is enough: once it is there, the task looks at all of them again.
        worth = waiting if self.wait_for == _ANY else waiting[:1]
        return [
            {
                "table": one.table,
                "lance_conn_id": self.lance_conn_id,
                **asdict(one.after(looks[one.table])),
                "poll_interval": self.poke_interval,
            }
            for one in worth
        ]

    def _defer(self, waits: list[dict[str, Any]], deadline: datetime) -> None:
        from airflow_provider_lancens.triggers.any_table import LanceAnyTableTrigger
        from airflow_provider_lancens.triggers.table_version import LanceTableVersionTrigger

        # A plain timedelta: the worker can't report pendulum's Interval, a difference of its times.
        left = timedelta(seconds=(deadline - pendulum.now("UTC")).total_seconds())
        if left <= timedelta():
            raise AirflowSensorTimeout(f"Sensor has timed out: it waited longer than {self.timeout} seconds.")
        self.defer(
            trigger=LanceTableVersionTrigger(**waits[0])
            if len(waits) == 1
            else LanceAnyTableTrigger(waits=waits),
            method_name="execute_complete",
            kwargs={"deadline": deadline.isoformat()},
            timeout=left,
        )


def _tag(context: Context) -> str:
    task = context["ti"]
    index = getattr(task, "map_index", None)
    mapped = [] if index in (None, -1) else [str(index)]
    return tag_name(task.dag_id, task.run_id, task.task_id, *mapped)


def _version_text(seen: TableVersion | None) -> str:
    return "no version yet" if seen is None else f"version {seen.version}"
