"""Runs of the DAG: started as processes, watched through Airflow's database.

Airflow is imported only when needed, since it reads its environment on import.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from quickstart.children import Children
from quickstart.home import DAG_ID, Home

FINISHED = ("success", "failed", "upstream_failed", "skipped", "removed")
UNFINISHED = ("running", "deferred", "up_for_retry", "up_for_reschedule", "queued")


@dataclass(frozen=True, slots=True)
class TaskState:
    """The progress of one task of a run."""

    task: str
    state: str
    started: datetime | None
    ended: datetime | None
    tries: int
    rows: int | None = None
    """How many it ingested, once it has."""

    @property
    def seconds(self) -> float | None:
        """How long it ran, or has been running; None before it starts."""
        if self.started is None:
            return None
        return ((self.ended or datetime.now(UTC)) - self.started).total_seconds()


class MonthByMonth:
    """The runs of some months, one after the other, each by `airflow dags test`.

    That command needs no scheduler and no triggerer: it runs the tasks, and the triggers that they defer to,
    in one process.

    Args:
        home: where their logs go.
        months: which months.
        children: where their processes belong.
    """

    def __init__(self, home: Home, months: Sequence[str], children: Children) -> None:
        self._home = home
        self._waiting = list(months)
        self._children = children
        self._process: subprocess.Popen[bytes] | None = None
        self.log = home.logs

    def go_on(self) -> bool:
        """Start the next run if the last one succeeded; return whether a run is in progress."""
        if self._process and self._process.poll() is None:
            return True
        if self.failed or not self._waiting:
            return False
        self._start(self._waiting.pop(0))
        return True

    @property
    def failed(self) -> bool:
        """Whether the last run failed."""
        return self._process is not None and bool(self._process.poll())

    def _start(self, month: str) -> None:
        conf = json.dumps({"month": month})
        command = [sys.executable, "-m", "airflow", "dags", "test", DAG_ID, "--conf", conf]
        self.log = log_of(self._home, month)
        self.log.unlink(missing_ok=True)
        self._process = self._children.start(f"run {month}", command, self.log)


def log_of(home: Home, month: str) -> Path:
    """The log of a month's newest run by the quickstart."""
    return home.log(f"run-{month}")


class RunHistory:
    """The runs in Airflow's database that start after this object was created."""

    def __init__(self) -> None:
        from airflow.models.dagrun import DagRun

        with _session() as session:
            newest = session.query(DagRun).where(DagRun.dag_id == DAG_ID).order_by(DagRun.id.desc()).first()
            self._last_before = newest.id if newest else 0

    def task_states(self, month: str) -> dict[str, TaskState]:
        """The tasks of the month's run; none before Airflow made it."""
        with _session() as session:
            run = self._run_of(session, month)
            instances = run.get_task_instances(session=session) if run else []
            results = self.results(month) if any(one.state == "success" for one in instances) else {}
            return {one.task_id: _task_state(one, results.get(one.task_id)) for one in instances}

    def results(self, month: str) -> dict[str, Any]:
        """Return the return values of the month's tasks, by task."""
        from airflow.models.xcom import XComModel

        with _session() as session:
            run = self._run_of(session, month)
            if run is None:
                return {}
            rows = session.scalars(XComModel.get_many(run_id=run.run_id, dag_ids=DAG_ID, key="return_value"))
            return {row.task_id: XComModel.deserialize_value(row) for row in rows}

    def run_id(self, month: str) -> str | None:
        """The id of the month's run; None before Airflow made it."""
        with _session() as session:
            run = self._run_of(session, month)
            return run.run_id if run else None

    def fail_unfinished(self, months: Sequence[str]) -> None:
        """Mark runs whose process was stopped as failed, with their tasks, so that nobody waits for them."""
        with _session() as session:
            for run in filter(None, (self._run_of(session, month) for month in months)):
                if run.state == "running":
                    run.set_state("failed")
                    for instance in run.get_task_instances(state=UNFINISHED, session=session):
                        instance.set_state("failed", session=session)

    def _run_of(self, session: Any, month: str) -> Any:
        from airflow.models.dagrun import DagRun

        runs = session.query(DagRun).where(DagRun.dag_id == DAG_ID, DagRun.id > self._last_before)
        return next((run for run in runs if (run.conf or {}).get("month") == month), None)


def tasks_in_order() -> list[str]:
    """The DAG's tasks, each after those that it waits for."""
    from flights import dag

    return [node.node_id for node in dag.task_group.topological_sort()]


def _session() -> AbstractContextManager[Any]:
    from airflow.utils.session import create_session

    return create_session()


def _task_state(instance: Any, result: Any) -> TaskState:
    return TaskState(
        task=instance.task_id,
        state=str(instance.state or "waiting"),
        started=instance.start_date,
        ended=instance.end_date,
        tries=instance.try_number,
        rows=result.get("inserted") if isinstance(result, dict) else None,
    )
