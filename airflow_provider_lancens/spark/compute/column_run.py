"""A run that computes a column: which fragments are left, their tasks, and the commits of their files.

The driver commits in steps. What is left is determined from the newest version: when the run begins, and
again if other commits have rewritten fragments that were under way.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Collection
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.spark.amounts import counted, size_of
from airflow_provider_lancens.spark.commit.write_lease import WriteLease
from airflow_provider_lancens.spark.compute.column_commit import (
    ColumnUpdate,
    commit_columns,
    counts_of,
    mark_computed,
)
from airflow_provider_lancens.spark.compute.column_files import ColumnFile, read_file_info
from airflow_provider_lancens.spark.compute.column_function import ColumnFunctionError
from airflow_provider_lancens.spark.compute.column_task import (
    ColumnRequest,
    ColumnTask,
    FunctionFailure,
    TaskAnswer,
)
from airflow_provider_lancens.spark.maintenance.parallel_tasks import ParallelTasks, tasks_at_once
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable

if TYPE_CHECKING:
    from lance import LanceDataset
    from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)

_SECONDS = 60.0
"""Finished fragments are committed after this time, even if they are fewer than `commit_every`."""
_ROUNDS = 20
"""Maximum number of consecutive preemptions before a run fails."""
_SHARE = 4
_Answered: TypeAlias = tuple[int, TaskAnswer[ColumnFile]]
"""What a task found, with the id of its fragment."""


@dataclass(slots=True)
class ColumnRun:
    """One run over a table."""

    target: ResolvedTable
    lease: WriteLease
    request: ColumnRequest
    is_missing_only: bool
    """Whether only rows without a value are to be computed, and no other condition is given."""
    commit_every: int | None
    max_tasks: int | None
    latest: LanceDataset
    """The dataset at the newest version that the run knows of."""
    versions: list[int] = field(default_factory=list)
    """The versions that it made."""
    files: list[ColumnFile] = field(default_factory=list)
    """The files that it committed."""

    def run(self, spark: Callable[[], SparkSession]) -> None:
        """Compute all fragments that are left.

        Args:
            spark: returns the session, called only if there is work.

        Raises:
            ColumnFunctionError: the function raised an exception; what was finished is committed.
            InvalidInputError: (13) the function returned something invalid.
            ConcurrentModificationError: (14) other commits kept rewriting the fragments.
        """
        preemptions = 0
        while left := fragments_left(self):
            self._mark()
            before = len(self.versions)
            if not _Round(self, spark(), deque(left)).run():
                return
            preemptions = 0 if len(self.versions) > before else preemptions + 1
            if preemptions == _ROUNDS:
                raise spec_errors.ConcurrentModificationError(
                    f"table {self.target.id}: other commits rewrote its fragments {_ROUNDS} times while "
                    f"column {self._column!r} was computed for them; run it again once they have ended"
                )
            _log.info("table %s: fragments were rewritten meanwhile; planning them anew", self.target.id)
            self.latest = self.target.open_latest() or self.latest

    def commit(self, files: Collection[ColumnFile]) -> bool:
        """Commit finished files; return whether all of them, and not only those that others have left."""
        layout, base = self.request.layout, self.latest
        update = ColumnUpdate(
            table=str(self.target.id),
            base=base.version,
            schema=base.schema,
            fragments=[],
            layout=layout,
            files=tuple(files),
        )
        version = commit_columns(self.target, self.lease, update)
        if version is not None:
            self.latest = self.target.open(version)
            self.versions.append(version)
            self.files += update.applied
        return version is not None and len(update.applied) == len(files)

    def failed(self, fragment: int, failure: FunctionFailure) -> Exception:
        """Return the error to raise if the function failed."""
        done = f"; {len(self.files)} fragments are committed" if self.files else ""
        text = (
            f"table {self.target.id}: column {self._column!r}: the function failed on fragment {fragment}: "
            f"{failure.message}{done}"
        )
        return spec_errors.InvalidInputError(text) if failure.is_invalid else ColumnFunctionError(text)

    def _mark(self) -> None:
        marked = mark_computed(self.target, self.latest, self._column)
        if marked.version > self.latest.version:
            self.versions.append(marked.version)
        self.latest = marked

    @property
    def _column(self) -> str:
        return str(self.request.layout.field.name)


def fragments_left(run: ColumnRun) -> list[int]:
    """Return the fragments at the newest version that the run hasn't computed, and that may have work.

    Raises:
        UnsupportedOperationError: (0) a fragment has overlays, which would hide the computed values.
    """
    layout, request = run.request.layout, run.request
    present = [fragment.metadata for fragment in run.latest.get_fragments()]
    if any(fragment.overlays for fragment in present):
        raise spec_errors.UnsupportedOperationError(
            f"table {run.target.id}: it has data overlays, which would hide computed values; compact it first"
        )
    own = {file.path for file in run.files}
    files = {fragment.id: layout.file_of(fragment) for fragment in present}
    found = {number: file for number, file in files.items() if file is not None}
    stored = read_file_info(request.dataset, list(found.values()))
    done = {name for name, info in stored.items() if run.is_missing_only and info.nulls == 0}
    if request.execution_id:
        done |= {name for name, info in stored.items() if info.execution_id == request.execution_id}
    return [number for number in files if number not in found or found[number].path not in own | done]


@dataclass(slots=True)
class _Round:
    """The fragments that were left at one version."""

    of: ColumnRun
    session: SparkSession
    queue: deque[int]
    finished: list[ColumnFile] = field(default_factory=list)
    """Written and not yet committed."""
    is_preempted: bool = False
    error: Exception | None = None
    failed: tuple[int, FunctionFailure] | None = None

    def run(self) -> bool:
        """Compute and commit; return whether other commits have preempted some."""
        count, most = len(self.queue), self.of.max_tasks or tasks_at_once(self.session)
        step = self.of.commit_every or max(1, most // _SHARE)
        present = {fragment.fragment_id for fragment in self.of.latest.get_fragments()}
        last = time.monotonic()
        tasks: ParallelTasks[_Answered] = ParallelTasks(self.session, most)
        with tasks:
            while self.queue or tasks.running:
                self._start(tasks, max(most, step), present)
                for one in tasks.finished(_SECONDS):
                    self._take(one)
                is_over = not (self.queue or tasks.running)
                is_due = len(self.finished) >= step or time.monotonic() - last > _SECONDS
                if self.finished and (is_over or is_due):
                    self._commit(count, len(self.queue) + tasks.running)
                    present = {fragment.fragment_id for fragment in self.of.latest.get_fragments()}
                    last = time.monotonic()
        if self.failed is not None:
            raise self.of.failed(*self.failed)
        if self.error is not None:
            raise self.error
        return self.is_preempted

    def _start(self, tasks: ParallelTasks[_Answered], most: int, present: set[int]) -> None:
        # Finished ones count too: a killed run then repeats at most as many fragments as tasks run at once.
        while self.queue and tasks.running + len(self.finished) < most and tasks.running < tasks.most:
            fragment = self.queue.popleft()
            if fragment in present:
                tasks.submit(_Numbered(ColumnTask(self.of.request, self.of.latest.version, fragment)))
            else:
                self.is_preempted = True

    def _take(self, done: Future[_Answered]) -> None:
        try:
            fragment, answer = done.result()
        except Exception as error:  # noqa: BLE001 of Spark or of the storage
            self.error = self.error or error
        else:
            if answer.result is not None:
                self.finished.append(answer.result)
            if answer.failure is not None:
                self.failed = self.failed or (fragment, answer.failure)
        if self.error or self.failed:
            self.queue.clear()  # those that run are still committed, and the error is raised then

    def _commit(self, count: int, left: int) -> None:
        files, self.finished = self.finished, []
        self.is_preempted |= not self.of.commit(files)
        made = counts_of(self.of.files)
        _log.info(
            "table %s: column %s: version %d; %d of %d fragments are left, %s, %s so far",
            self.of.target.id,
            self.of.request.layout.field.name,
            self.of.latest.version,
            left,
            count,
            counted(made.rows, "row"),
            size_of(made.bytes),
        )


@dataclass(frozen=True, slots=True)
class _Numbered:
    """A task that returns the number of its fragment too. Picklable."""

    task: ColumnTask

    def __call__(self) -> _Answered:
        return self.task.fragment, self.task()
