"""Sensor that waits until a table's version advances."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import pendulum
from airflow.sdk import BaseSensorOperator, PokeReturnValue

from airflow_provider_lancens.assets.table import WRITES_XCOM
from airflow_provider_lancens.hooks.airflow_errors import (
    AirflowFailException,
    AirflowRescheduleException,
    AirflowSensorTimeout,
    AirflowSkipException,
    AirflowTaskTimeout,
    LanceRetryableError,
)
from airflow_provider_lancens.hooks.lance_hook import LanceHook
from airflow_provider_lancens.hooks.table_checks import data_changed, index_covers, pin, tag_name
from airflow_provider_lancens.hooks.template_args import (
    CheckedTemplateArgs,
    check_choice,
    check_flag,
    parse_tables,
    parse_text,
)
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.links import LanceGlueTableLink, LancePageLink, LanceS3Link
from airflow_provider_lancens.namespace.table_status import (
    MISSING_SECONDS,
    TableStatus,
    missing_text,
    without_numbers,
)
from airflow_provider_lancens.provider_info import DEFAULT_CONNECTION
from airflow_provider_lancens.redaction import redact
from airflow_provider_lancens.sensors.version_bounds import (
    AwaitedVersion,
    Bound,
    Commits,
    commits_in_xcoms,
    read_wanted,
    seen_by_earlier_run,
)

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_lancens.hooks.metrics import WaitOutcome

_ALL, _ANY = "all", "any"
T = TypeVar("T")
Statuses = Mapping[TableId, TableStatus]
"""Result of a poll."""
_NO_TRIGGERER = "Trigger timeout"
"""What Airflow says of a deferral that it ends itself."""
_TRIGGERER_GRACE = timedelta(minutes=2)
"""How long after a wait's end Airflow ends its deferral, if the trigger hasn't."""


class LanceTableVersionSensor(CheckedTemplateArgs, BaseSensorOperator):
    """Wait until one or several tables reach a version.

    With neither `after_version` nor `min_version`, wait for a version other than the version that the same
    task returned in the previous run, by logical date; in the first run, for any version. A version that a
    task upstream of the sensor has committed in the same run ends the wait in any case, also if runs execute
    in another order than by their dates.

    Poke, reschedule and deferrable mode have the same outcomes. The sensor waits while a table doesn't exist
    or has no dataset yet, and while the metastore is unavailable; `timeout` limits the wait, and
    `execution_timeout` too, in any mode, counted from the first poke of a try. A table that doesn't exist for
    ten minutes is a warning in the log.
    Errors that waiting can't resolve, such as denied access or an invalid table name, fail the task without
    retries, or skip it with ``soft_fail``.

    Its XCom is ``{"table": str, "version": int, "previous_version": int | None, "location": str}``, and
    with `pin` also ``"tag": str``: the newest version when the wait ended, and the version that it follows.
    Each key is also pushed as a separate XCom, so that another sensor can use
    ``after_version=wait.output["version"]``. For a list of tables, it contains such a dictionary for each
    table that has a version, by the table's identifier.

    Args:
        table: table identifier, ``database$table``, or a list of these. Templated.
        after_version: the version must be greater than this one. For a list of tables, it can also be a
            dictionary by table. Templated, so that another task's XCom can be used; an empty value fails the
            task, since the task that it is taken from has returned no version, for instance because it was
            marked as success. 0 is any version, such as for a first run: ``{{ … or 0 }}``.
        min_version: the version must be this one or greater. Templated in the same way.
        wait_for: for a list, whether to wait for ``all`` tables or for ``any``. With ``any``, a table that
            can never be polled, such as a table of another format, is logged as a warning, and the wait
            goes on for the others; the task fails if none is left.
        data_only: ignore versions that compaction, indexing or configuration created, so that maintenance
            ends no wait. With `min_version` alone, and for a version that an upstream task has committed, any
            commit counts, since such a commit may have created the version that must exist.
        index: name of an index: wait also until it covers all rows of the first version that meets the
            conditions, as far as they are still in the table. Rows that were appended later needn't be in
            it. Templated.
        pin: tag the returned version in Lance, which protects it from clean-up until
            `LanceDeleteTagOperator` deletes the tag.
        lance_conn_id: a connection of any of this provider's types. Templated.
        deferrable: wait in the triggerer, after a first poll in the worker. False makes `mode` decide.
    """

    template_fields: Sequence[str] = ("table", "after_version", "min_version", "index", "lance_conn_id")
    checked_by_key = ("after_version", "min_version")
    operator_extra_links = (LancePageLink(), LanceGlueTableLink(), LanceS3Link())

    def __init__(
        self,
        *,
        table: str | Sequence[str],
        after_version: Bound = None,
        min_version: Bound = None,
        wait_for: Literal["all", "any"] = "all",
        data_only: bool = True,
        index: str | None = None,
        pin: bool = False,
        lance_conn_id: str = DEFAULT_CONNECTION,
        deferrable: bool = True,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("multiple_outputs", True)
        super().__init__(**kwargs)
        self.table = table
        self.after_version = after_version
        self.min_version = min_version
        self.wait_for = check_choice("wait_for", wait_for, (_ALL, _ANY))
        self.data_only = check_flag("data_only", data_only)
        self.index = index
        self.pin = check_flag("pin", pin)
        self.lance_conn_id = lance_conn_id
        self.deferrable = check_flag("deferrable", deferrable)
        self._reported: set[str] = set()
        self._unanswered: set[TableId] = set()
        self._unchecked: set[TableId] = set()
        """Tables whose polled version meets the bounds, while a check of it failed that may succeed later."""
        self._upstream: Commits | None = None
        self._failure = ""
        self._last: dict[TableId, str] = {}
        self._missing_since: dict[TableId, float] = {}

    def execute(self, context: Context) -> Any:
        """Poll until the wait ends; see `poke`.

        Raises:
            AirflowFailException: an argument is invalid, or polling can never succeed.
            AirflowSensorTimeout: it timed out; the message has the tables, the conditions and the result.
        """
        with self._counted(lambda: self._first_poke(context)), self._softly_timed_out():
            try:
                return super().execute(context)
            except AirflowSensorTimeout as error:
                raise AirflowSensorTimeout(f"{error} {self._last_answers()}".strip()) from None

    def poke(self, context: Context) -> PokeReturnValue | bool:
        """Poll once. A deferrable sensor that has to wait defers from here.

        Deferring inside the base class's loop leaves ``soft_fail`` and similar options to the base class, so
        that they mean the same in every mode.

        Raises:
            AirflowFailException: an argument is invalid, or polling can never succeed.
            AirflowTaskTimeout: `execution_timeout` has passed since the first poke.
        """
        began = self._first_poke(context)
        result = self._poll_once(context, self._deadline_from_now(), self._limit_from_now(), began)
        if result is not None:
            return PokeReturnValue(is_done=True, xcom_value=result)
        if began is not None and self.execution_timeout is not None:
            limit = began + self.execution_timeout
            if limit <= pendulum.now("UTC"):
                raise self._timed_out(limit, self._last_answers())
        return False

    def execute_complete(
        self,
        context: Context,
        event: Mapping[str, Any],
        deadline: str | None = None,
        limit: str | None = None,
    ) -> dict[str, Any] | None:
        """Poll again after the trigger fired, and decide as `poke` does: the task may have to defer again.

        Args:
            context: the task's context.
            event: the trigger's event.
            deadline: when the wait times out, in ISO 8601; None from ``dag.test()``, which resumes a task
                without its keyword arguments, and then the timeout starts again.
            limit: when `execution_timeout` ends, in the same way.

        Raises:
            AirflowFailException: the wait can never succeed.
            AirflowSensorTimeout: the task would have to wait longer, and has timed out.
            AirflowTaskTimeout: `execution_timeout` has passed.
        """
        ends = datetime.fromisoformat(deadline) if deadline else self._deadline_from_now()
        limited = datetime.fromisoformat(limit) if limit else None if deadline else self._limit_from_now()
        if event["status"] == "timeout":
            # A last poll, as in the other modes: a triggerer that was down until now hasn't polled.
            result = self._poll_once(context, ends, limited, is_last=True)
            if result is None:
                raise self._timed_out(limited, self._last_answers() or event["message"])
            return result
        if event["status"] != "success":
            raise AirflowFailException(event["message"])
        # The event is as old as the wait for a worker, and has one table. Since then, the table may have been
        # dropped, declared again or restored, so that its version is gone or no longer meets the bounds; the
        # result has the newest version, of every table; and whether data changed is read from that version.
        return self._poll_once(context, ends, limited)

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context) -> Any:
        """Continue after a deferral; Airflow ends one itself only if no triggerer ran the trigger in time.

        Raises:
            AirflowSensorTimeout: it did, and a last poll doesn't end the wait; the message has the tables.
        """
        deadline = (next_kwargs or {}).get("deadline")
        began = datetime.fromisoformat(deadline) - timedelta(seconds=self.timeout) if deadline else None
        with self._counted(lambda: began), self._softly_timed_out():
            if (next_kwargs or {}).get("error") == _NO_TRIGGERER:
                result = self._polled_without_triggerer(context)
                if result is not None:
                    return result
            try:
                return super().resume_execution(next_method, next_kwargs, context)
            except AirflowSensorTimeout as error:
                if str(error) != _NO_TRIGGERER:
                    raise
                raise AirflowSensorTimeout(
                    f"Sensor has timed out, waiting for {self.table}: no triggerer has answered in time. "
                    f"{self._last_answers()}".strip()
                ) from None

    def _polled_without_triggerer(self, context: Context) -> dict[str, Any] | None:
        """Poll a last time: while no triggerer ran, the awaited version may have been committed."""
        try:
            return self._poll_once(context, self._deadline_from_now(), None, is_last=True)
        except Exception as error:  # noqa: BLE001 - the task fails anyway, since it has timed out
            self.log.warning("The last poll failed: %s", redact(str(error)))
            return None

    @contextmanager
    def _softly_timed_out(self) -> Iterator[None]:
        """Skip the task with ``soft_fail`` if it times out in the block.

        If `execution_timeout` ends it, Airflow does so only while a poke runs, rather than between two pokes
        or after a deferral; and Airflow 3.1 doesn't if no triggerer ran.
        """
        try:
            yield
        except (AirflowTaskTimeout, AirflowSensorTimeout) as error:
            if self.soft_fail or self.never_fail:
                raise AirflowSkipException(f"Skipping due to soft_fail or never_fail: {error}") from error
            raise

    @contextmanager
    def _counted(self, began: Callable[[], datetime | None]) -> Iterator[None]:
        """Count the block if it ends the wait, rather than defers or reschedules the task.

        Args:
            began: returns when the wait began, or None if the block begins it; called only if metrics are on,
                since Airflow may have to be asked.
        """
        from airflow_provider_lancens.hooks import metrics

        if not metrics.is_on():
            yield
            return
        first = began() or pendulum.now("UTC")
        try:
            yield
        except AirflowRescheduleException:
            raise
        except (Exception, AirflowTaskTimeout) as error:  # that isn't an Exception
            self._count_wait("timed_out" if _is_timeout(error) else "failed", first)
            raise
        self._count_wait("succeeded", first)

    def _count_wait(self, outcome: WaitOutcome, began: datetime) -> None:
        from airflow_provider_lancens.hooks import metrics

        seconds = (datetime.now(UTC) - began).total_seconds()
        table = self.table if isinstance(self.table, str) else None
        metrics.count_wait(outcome, seconds, table, self.lance_conn_id)

    def _deadline_from_now(self) -> datetime:
        return pendulum.now("UTC") + timedelta(seconds=self.timeout)

    def _limit_from_now(self) -> datetime | None:
        # Airflow applies it to each part of a deferred task anew.
        return None if self.execution_timeout is None else pendulum.now("UTC") + self.execution_timeout

    def _timed_out(self, limit: datetime | None, found: str) -> BaseException:
        if limit is not None and limit <= pendulum.now("UTC"):
            return AirflowTaskTimeout(f"execution_timeout of {self.execution_timeout} has passed. {found}")
        return AirflowSensorTimeout(f"Sensor has timed out after {self.timeout:g} seconds. {found}")

    def _last_answers(self) -> str:
        return ". ".join(self._last.values())

    def _first_poke(self, context: Context) -> datetime | None:
        """Return when the first of a try's pokes began, each of which is a process of its own.

        None in other modes, and in the first poke.
        """
        return context["ti"].get_first_reschedule_date(context) if self.reschedule else None

    def _get_next_poke_interval(
        self, started_at: datetime | float, run_duration: Callable[[], float], poke_count: int
    ) -> float:
        """Return the seconds to the next poke: rescheduled, not before Airflow knows that this one has ended.

        Otherwise the scheduler takes the end of this process for the end of the next process, and fails the
        task. The last poke is that at the end of `execution_timeout`, which Airflow applies to each poke
        alone.
        """
        interval: float = super()._get_next_poke_interval(started_at, run_duration, poke_count)
        if not self.reschedule:
            return interval
        if self.execution_timeout is not None:
            interval = min(interval, self.execution_timeout.total_seconds() - run_duration())
        from airflow_provider_lancens.triggers.table_version_trigger import worker_end

        return max(interval, worker_end())

    @cached_property
    def hook(self) -> LanceHook:
        """The hook for the connection's type."""
        return LanceHook.for_connection(self.lance_conn_id)

    def _poll_once(
        self,
        context: Context,
        deadline: datetime,
        limit: datetime | None,
        began: datetime | None = None,
        *,
        is_last: bool = False,
    ) -> dict[str, Any] | None:
        wanted = read_wanted(
            parse_tables(self.table),
            self.after_version,
            self.min_version,
            lambda: self._seen_before(context),
            lambda: self._made_upstream(context),
        )
        # Until the next poke, an idle connection would occupy a thread of the metastore for nothing.
        with closing(self.hook):
            statuses, waiting = self._poll(wanted)
            refused = [awaited for awaited in wanted if awaited.table not in statuses]
            wanted = [
                awaited.seen_at(statuses[awaited.table]) for awaited in wanted if awaited.table in statuses
            ]
            if not waiting or (self.wait_for == _ANY and len(waiting) < len(wanted)):
                result = self._retryable(self._result, wanted, statuses, context)
                if result is not None:
                    return {**result, **_last_results(refused)}
                for awaited in wanted:
                    if awaited not in waiting:
                        self._note_unchecked(statuses[awaited.table])
                waiting = wanted
        for awaited in waiting:
            self._log_wait(awaited, statuses[awaited.table], began)
        if self.deferrable and not is_last:
            self._defer(self._waits(waiting, statuses), deadline, limit)
        return None

    def _log_wait(self, wanted: AwaitedVersion, status: TableStatus, began: datetime | None) -> None:
        """Log what a table is waited for, once as long as nothing changes; rescheduled, once a poke."""
        table = wanted.table
        if table in self._unchecked or (status.location is None and table in self._unanswered):
            return  # `_retryable` has logged why
        text = f"{status}; waiting for {wanted.condition}"
        if status.location is None and began is not None and _is_long_ago(began):
            # Of earlier pokes, only the time of the first is known.
            self._last[table] = text
            self.log.warning("%s", missing_text(table))
            return
        if text != self._last.get(table):
            self.log.info("%s", text)
        self._last[table] = text
        if status.location is not None:
            self._missing_since.pop(table, None)
        elif time.monotonic() - self._missing_since.setdefault(table, time.monotonic()) >= MISSING_SECONDS:
            self._missing_since[table] = float("inf")  # the warning is logged once
            self.log.warning("%s", missing_text(table))

    def _poll(self, wanted: Sequence[AwaitedVersion]) -> tuple[Statuses, list[AwaitedVersion]]:
        """Return the statuses, for ``any`` only of tables that can be polled, and what to wait for."""
        statuses: dict[TableId, TableStatus] = {}
        self._unanswered, self._unchecked = set(), set()
        waiting: list[AwaitedVersion] = []
        errors: dict[str, None] = {}
        for awaited in wanted:
            try:
                status = self._retryable(self.hook.table_status, awaited.table) or TableStatus(awaited.table)
                awaited = awaited.seen_at(status)
                if status.location is None and self._failure:
                    self._unanswered.add(awaited.table)
                    self._last[awaited.table] = f"{self._failure}; waiting for {awaited.condition}"
                if not self._is_fulfilled(awaited, status):
                    waiting.append(awaited)
                statuses[awaited.table] = status
            except AirflowFailException as error:
                if self.wait_for == _ALL:
                    raise
                errors[str(error)] = None
        if not statuses:
            raise AirflowFailException("; ".join(errors))
        for message in errors.keys() - self._reported:
            self.log.warning("%s; still waiting for the other tables", message)
        self._reported.update(errors)
        return statuses, waiting

    def _seen_before(self, context: Context) -> dict[TableId, TableStatus]:
        # Airflow clears a task's own XCom when it starts: the XCom is of an earlier run.
        task = context["ti"]
        xcom = task.xcom_pull(
            task_ids=self.task_id, include_prior_dates=True, map_indexes=getattr(task, "map_index", None)
        )
        return seen_by_earlier_run(xcom)

    def _made_upstream(self, context: Context) -> Commits:
        if self._upstream is None:  # once: tasks upstream ended before the sensor began
            has_dag: bool = self.has_dag()  # type: ignore[no-untyped-call]
            names = sorted(self.get_flat_relative_ids(upstream=True)) if has_dag else []
            pull = context["ti"].xcom_pull
            written = [pull(task_ids=names), pull(task_ids=names, key=WRITES_XCOM)] if names else []
            self._upstream = commits_in_xcoms(written)
        return self._upstream

    def _is_fulfilled(self, wanted: AwaitedVersion, status: TableStatus) -> bool:
        if not wanted.condition.holds(status):
            return False
        has_passed = self._retryable(self._checked, wanted, status)
        if has_passed is None:
            self._note_unchecked(status)
        return bool(has_passed)

    def _checked(self, wanted: AwaitedVersion, status: TableStatus) -> bool:
        """Return whether a polled version that meets the bounds has changed data, and has the index."""
        if self.data_only and not wanted.is_reached_by_any_commit:
            since = wanted.data_since(status)
            if not data_changed(self.hook, wanted.table, since, status.version):
                return False
        return not (index := parse_text(self.index)) or self._is_indexed(wanted, status, index)

    def _is_indexed(self, wanted: AwaitedVersion, status: TableStatus, index: str) -> bool:
        first = wanted.first(status)
        if index_covers(self.hook, wanted.table, index, first, status.version):
            return True
        message = "Table %s: at version %d, index %r doesn't cover all rows of version %d"
        self.log.info(message, wanted.table, status.version, index, first)
        return False

    def _note_unchecked(self, status: TableStatus) -> None:
        self._unchecked.add(status.table)
        self._last[status.table] = f"{status}; {self._failure}"

    def _result(
        self, wanted: Sequence[AwaitedVersion], statuses: Statuses, context: Context
    ) -> dict[str, Any]:
        results: dict[str, Any] = {}
        for awaited in wanted:
            if awaited.table in self._unanswered:
                results.update(_last_results([awaited]))
            elif statuses[awaited.table].version:
                result = results[str(awaited.table)] = awaited.result(statuses[awaited.table])
                if self.pin:
                    result["tag"] = _tag(context)
                    pin(self.hook, awaited.table, result["version"], result["tag"])
                self.log.info("Table %s is at version %d", awaited.table, result["version"])
        return results[str(wanted[0].table)] if isinstance(self.table, str) else results

    def _retryable(self, call: Callable[..., T], *arguments: Any) -> T | None:
        """Return what a call returns; None after an error that may pass, which is logged."""
        self._failure = ""
        try:
            return call(*arguments)
        except LanceRetryableError as error:
            self._failure = str(error)
            if without_numbers(self._failure) not in self._reported:
                self._reported.add(without_numbers(self._failure))
                self.log.warning("%s; still waiting", error)
            return None

    def _waits(self, waiting: Sequence[AwaitedVersion], statuses: Statuses) -> list[dict[str, Any]]:
        # For "all", waiting for the first table is enough: after that, the task polls all of them again.
        worth = waiting if self.wait_for == _ANY else waiting[:1]
        return [self._wait(awaited, statuses[awaited.table]) for awaited in worth]

    def _wait(self, awaited: AwaitedVersion, status: TableStatus) -> dict[str, Any]:
        is_unchecked = awaited.table in self._unchecked  # the version that was polled may end the wait
        return {
            "table": str(awaited.table),
            "lance_conn_id": self.lance_conn_id,
            **asdict(awaited.condition if is_unchecked else awaited.after(status)),
            "poll_interval": self.poke_interval,
            "min_wait": self.poke_interval if is_unchecked else 0.0,
        }

    def _defer(self, waits: list[dict[str, Any]], deadline: datetime, limit: datetime | None) -> None:
        from airflow_provider_lancens.triggers.table_version_trigger import (
            LanceAnyTableTrigger,
            LanceTableVersionTrigger,
        )

        # A plain timedelta: the worker can't report pendulum's Interval, a difference of its times.
        until = deadline if limit is None else min(deadline, limit)
        left = timedelta(seconds=(until - pendulum.now("UTC")).total_seconds())
        if left <= timedelta():
            raise self._timed_out(limit, self._last_answers())
        waits = [{**wait, "until": until.isoformat()} for wait in waits]
        self.defer(
            trigger=LanceTableVersionTrigger(**waits[0])
            if len(waits) == 1
            else LanceAnyTableTrigger(waits=waits),
            method_name="execute_complete",
            kwargs={"deadline": deadline.isoformat(), "limit": limit.isoformat() if limit else None},
            # The trigger ends the wait itself, and says what it found; unless no triggerer runs it.
            timeout=left + _TRIGGERER_GRACE,
        )


def _last_results(unknown: Sequence[AwaitedVersion]) -> dict[str, Any]:
    """Return the results of an earlier run for tables that couldn't be polled, as far as it has seen them.

    The next run goes on there; without them, all rows of these tables would be changes for it.
    """
    return {str(awaited.table): awaited.last_result() for awaited in unknown if awaited.location is not None}


def _is_timeout(error: BaseException) -> bool:
    # With ``soft_fail``, Airflow raises a skip instead: from the error, or without one after `timeout`.
    if isinstance(error, AirflowSkipException):
        return error.__cause__ is None or _is_timeout(error.__cause__)
    return isinstance(error, (AirflowSensorTimeout, AirflowTaskTimeout))


def _is_long_ago(began: datetime) -> bool:
    return began + timedelta(seconds=MISSING_SECONDS) <= pendulum.now("UTC")


def _tag(context: Context) -> str:
    task = context["ti"]
    index = getattr(task, "map_index", None)
    mapped = [] if index in (None, -1) else [str(index)]
    return tag_name(task.dag_id, task.run_id, task.task_id, *mapped)
