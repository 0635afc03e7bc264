"""Compaction: the driver plans, the executors rewrite small fragments as larger ones, the driver commits."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.spark.amounts import counted
from airflow_provider_lancens.spark.maintenance.maintenance_options import (
    CompactionOptions,
    Thresholds,
)
from airflow_provider_lancens.spark.maintenance.parallel_tasks import Spark, run_in_parallel
from airflow_provider_lancens.spark.maintenance.table_state import (
    MaintainedTable,
    TableState,
    maintained,
    plan_compaction,
    table_state,
)
from airflow_provider_lancens.spark.observed import observed
from airflow_provider_lancens.spark.results import CompactionResult, elapsed
from airflow_provider_lancens.spark.storage_failures import storage_failures
from airflow_provider_lancens.spark.table.dataset_ref import DatasetRef
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec

if TYPE_CHECKING:
    from lance.optimize import CompactionMetrics, CompactionPlan, CompactionTask, RewriteResult
    from lance_namespace import LanceNamespace

_COMPACT, _NOTHING = "compact", "nothing to compact"
_log = logging.getLogger(__name__)


@observed("compact")
def compact_table(
    spark: Spark,
    namespace: NamespaceSpec | LanceNamespace,
    table: TableId | str,
    *,
    options: CompactionOptions | None = None,
    thresholds: Thresholds | None = None,
) -> CompactionResult:
    """Merge small fragments and drop deleted rows; readers see the same rows.

    Rows that others append meanwhile aren't affected, nor are the indices. Run again, it has nothing left to
    do and commits nothing. A driver that dies leaves unreferenced files.

    `spark` is the session, or a function that starts one, called only if there is work; `options` say which
    fragments to rewrite, and how. See `Table.compact` for the other arguments and errors.
    """
    started, options = time.monotonic(), options or CompactionOptions()
    reason = ""
    if thresholds is not None and thresholds.limit_compaction:
        with table_state(namespace, table) as state:
            decision = state.decide_compaction(options, thresholds)
        if not decision.is_due:
            return not_compacted(state, decision.reason)
        reason = decision.reason
    with maintained(namespace, table) as opened:
        plan = plan_compaction(opened.dataset, options)
        metrics = _compact(spark, opened, plan) if plan.tasks else None
        result = _result(opened, metrics, plan.num_tasks(), started, reason)
    _log.info("%s", _sentence(result))
    return result


def planned_compaction(
    namespace: NamespaceSpec | LanceNamespace,
    table: TableId | str,
    *,
    options: CompactionOptions | None = None,
    thresholds: Thresholds | None = None,
) -> CompactionResult:
    """Return what a compaction would rewrite, by the metadata; see `compact_table` for the arguments."""
    started, options = time.monotonic(), options or CompactionOptions()
    with table_state(namespace, table) as state:
        if thresholds is not None and thresholds.limit_compaction:
            decision = state.decide_compaction(options, thresholds)
            if not decision.is_due:
                return replace(not_compacted(state, decision.reason), outcome="planned")
        plan = plan_compaction(state.dataset, options)
        tasks: Sequence[CompactionTask] = plan.tasks
    fragments = sum(len(task.fragments) for task in tasks)
    found = f"{counted(fragments, 'fragment')} would be rewritten by {counted(len(tasks), 'task')}"
    result = not_compacted(state, found if tasks else _NOTHING)
    _log.info("table %s: %s", result.table, result.reason)
    return replace(
        result,
        outcome="planned",
        fragments_removed=fragments,
        tasks=len(tasks),
        seconds=elapsed(started),
    )


def not_compacted(state: TableState, reason: str) -> CompactionResult:
    """Return the result where a compaction isn't due."""
    return CompactionResult(
        table=state.table,
        operation=_COMPACT,
        outcome="unchanged",
        version=state.version,
        previous_version=state.version,
        seconds=0.0,
        reason=reason,
    )


@dataclass(frozen=True, slots=True)
class RewriteTask:
    """Rewrite the fragments of one task of the plan, on an executor. Picklable."""

    dataset: DatasetRef
    task: CompactionTask

    def __call__(self) -> RewriteResult:
        """Write the new files, which aren't committed yet."""
        with storage_failures(self.dataset.location, self.dataset.storage_options):
            return self.task.execute(self.dataset.open(self.task.read_version))


def _compact(spark: Spark, opened: MaintainedTable, plan: CompactionPlan) -> CompactionMetrics:
    tasks: Sequence[CompactionTask] = plan.tasks
    count = sum(len(task.fragments) for task in tasks)
    _log.info("table %s: compacting %d fragments in %d tasks", opened.target.id, count, len(tasks))
    rewritten = run_in_parallel(spark, [RewriteTask(opened.target.dataset, task) for task in tasks])
    return _commit(opened, rewritten)


def _commit(opened: MaintainedTable, rewritten: list[RewriteResult]) -> CompactionMetrics:
    from lance.optimize import Compaction

    with opened.committing(_COMPACT):
        return Compaction.commit(opened.dataset, rewritten)


def _result(
    opened: MaintainedTable, metrics: CompactionMetrics | None, tasks: int, started: float, reason: str
) -> CompactionResult:
    return CompactionResult(
        table=str(opened.target.id),
        operation=_COMPACT,
        outcome="done" if metrics else "unchanged",
        version=opened.dataset.version,
        previous_version=opened.version,
        fragments_removed=metrics.fragments_removed if metrics else 0,
        fragments_added=metrics.fragments_added if metrics else 0,
        files_removed=metrics.files_removed if metrics else 0,
        files_added=metrics.files_added if metrics else 0,
        tasks=tasks,
        seconds=elapsed(started),
        reason=reason if metrics else _NOTHING,
    )


def _sentence(result: CompactionResult) -> str:
    if not result.is_done:
        return f"table {result.table}: nothing to compact, still at version {result.version}"
    return (
        f"table {result.table}: committed version {result.version}, compacted "
        f"{result.fragments_removed} fragments into {result.fragments_added} in "
        f"{result.seconds:.1f} s"
    )
