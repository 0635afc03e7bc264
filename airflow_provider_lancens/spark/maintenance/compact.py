"""Compaction: the driver plans, the executors rewrite small fragments as larger ones, the driver commits."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_lancens.formatting import format_count
from airflow_provider_lancens.identifiers import TableId
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
    state_of,
    table_state,
)
from airflow_provider_lancens.spark.observed import observed
from airflow_provider_lancens.spark.results import CompactionResult, Outcome, elapsed
from airflow_provider_lancens.spark.storage_failures import storage_failures
from airflow_provider_lancens.spark.table.dataset_ref import DatasetRef
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec, resolved_table

if TYPE_CHECKING:
    from lance.optimize import CompactionMetrics, CompactionPlan, CompactionTask, RewriteResult
    from lance_namespace import LanceNamespace

    from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable

_COMPACT, _NOTHING = "compact", "nothing to compact"
_CHANGED = ("fragments_removed", "fragments_added", "files_removed", "files_added")
"""Counts that Lance and a result call by the same names."""
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
    with resolved_table(namespace, table) as target:
        if thresholds is not None and thresholds.limit_compaction:
            state = state_of(target)
            decision = state.decide_compaction(options, thresholds)
            if not decision.is_due:
                return not_compacted(state, decision.reason)
            reason = decision.reason
        with maintained(target) as opened:
            plan = plan_compaction(opened.dataset, options)
            metrics = _compact(spark, opened, plan) if plan.tasks else None
            result = _result(
                opened.target,
                opened.previous_version,
                "done" if metrics else "unchanged",
                reason if metrics else _NOTHING,
                version=opened.dataset.version,
                changed={name: getattr(metrics, name) for name in _CHANGED} if metrics else {},
                tasks=plan.num_tasks(),
                seconds=elapsed(started),
            )
    _log.info("%s", _sentence(result))
    return result


def planned_compaction(
    namespace: NamespaceSpec | LanceNamespace,
    table: TableId | str,
    *,
    options: CompactionOptions | None = None,
    thresholds: Thresholds | None = None,
) -> CompactionResult:
    """Return the planned compaction, by the metadata; see `compact_table` for the arguments."""
    started, options = time.monotonic(), options or CompactionOptions()
    with table_state(namespace, table) as state:
        if thresholds is not None and thresholds.limit_compaction:
            decision = state.decide_compaction(options, thresholds)
            if not decision.is_due:
                return _result(state.target, state.version, "planned", decision.reason)
        plan = plan_compaction(state.dataset, options)
        tasks: Sequence[CompactionTask] = plan.tasks
    fragments = sum(len(task.fragments) for task in tasks)
    found = f"{format_count(fragments, 'fragment')} would be rewritten by {format_count(len(tasks), 'task')}"
    reason = found if tasks else _NOTHING
    _log.info("table %s: %s", state.table, reason)
    return _result(
        state.target,
        state.version,
        "planned",
        reason,
        changed={"fragments_removed": fragments},
        tasks=len(tasks),
        seconds=elapsed(started),
    )


def not_compacted(state: TableState, reason: str) -> CompactionResult:
    """Return the result where a compaction isn't due."""
    return _result(state.target, state.version, "unchanged", reason)


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
    target: ResolvedTable,
    base: int,
    outcome: Outcome,
    reason: str,
    *,
    version: int | None = None,
    changed: Mapping[str, int] | None = None,
    tasks: int = 0,
    seconds: float = 0.0,
) -> CompactionResult:
    """Return the result of a compaction after version `base`, which made `version`, by default none."""
    return CompactionResult(
        table=str(target.id),
        location=target.dataset.location,
        operation=_COMPACT,
        outcome=outcome,
        version=base if version is None else version,
        previous_version=base,
        **(changed or {}),
        tasks=tasks,
        seconds=seconds,
        reason=reason,
    )


def _sentence(result: CompactionResult) -> str:
    if not result.is_done:
        return f"table {result.table}: nothing to compact, still at version {result.version}"
    return (
        f"table {result.table}: committed version {result.version}, compacted "
        f"{result.fragments_removed} fragments into {result.fragments_added} in "
        f"{result.seconds:.1f} s"
    )
