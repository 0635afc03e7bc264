"""Compaction: the driver plans, the executors rewrite small fragments as larger ones, the driver commits."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.spark.dataset import DatasetRef
from airflow_provider_lancens.spark.maintenance.options import CompactionOptions, CompactionResult
from airflow_provider_lancens.spark.maintenance.side_by_side import Spark, side_by_side
from airflow_provider_lancens.spark.maintenance.table import MaintainedTable, maintained
from airflow_provider_lancens.spark.target import NamespaceSpec

if TYPE_CHECKING:
    from lance.optimize import CompactionMetrics, CompactionPlan, CompactionTask, RewriteResult
    from lance_namespace import LanceNamespace

_log = logging.getLogger(__name__)


def compact_table(
    spark: Spark,
    namespace: NamespaceSpec | LanceNamespace,
    table: TableId | str,
    *,
    options: CompactionOptions | None = None,
) -> CompactionResult:
    """Bring small fragments together and leave deleted rows behind; readers see the same rows.

    What others append meanwhile stays as it is, and so do the indices. Run again, it finds nothing left
    to do and commits nothing. A driver that dies leaves files that no version refers to.

    Args:
        spark: the session, or a function that starts one, called only where there is work.
        namespace: the namespace that knows the table, or the words that make one.
        table: its identifier, such as ``db$table``.
        options: which fragments, and into what.

    Raises:
        TableNotFoundError: (4) the table isn't declared.
        TableVersionNotFoundError: (11) nothing was written to it yet.
        InvalidInputError: (13) `table` can't be an identifier.
        ConcurrentModificationError: (14) others changed rows of the same fragments meanwhile.
        ServiceUnavailableError: (17) the storage or the metastore failed.
        InvalidTableStateError: (19) a writer by path bypassed the metastore that decides the versions.
    """
    started = time.monotonic()
    with maintained(namespace, table) as opened:
        plan = _plan(opened, options or CompactionOptions())
        metrics = _compact(spark, opened, plan) if plan.tasks else None
        result = _answer(opened, metrics, plan.num_tasks(), started)
    _log.info("%s", _sentence(result))
    return result


@dataclass(frozen=True, slots=True)
class RewriteTask:
    """Rewrite the fragments of one of the plan's tasks; picklable, run by an executor."""

    dataset: DatasetRef
    task: CompactionTask

    def __call__(self) -> RewriteResult:
        """Write the new files; they belong to no version yet."""
        return self.task.execute(self.dataset.open(self.task.read_version))


def _plan(opened: MaintainedTable, options: CompactionOptions) -> CompactionPlan:
    from lance.optimize import Compaction

    # Lance would write its own newest format, and others may read this table with an older Lance.
    settings = {**options.as_lance(), "data_storage_version": opened.dataset.data_storage_version}
    return Compaction.plan(opened.dataset, cast("Any", settings))


def _compact(spark: Spark, opened: MaintainedTable, plan: CompactionPlan) -> CompactionMetrics:
    tasks: Sequence[CompactionTask] = plan.tasks
    count = sum(len(task.fragments) for task in tasks)
    _log.info("table %s: compacting %d fragments in %d tasks", opened.target.id, count, len(tasks))
    rewritten = side_by_side(spark, [RewriteTask(opened.target.dataset, task) for task in tasks])
    return _commit(opened, rewritten)


def _commit(opened: MaintainedTable, rewritten: list[RewriteResult]) -> CompactionMetrics:
    from lance.optimize import Compaction

    with opened.committing():
        return Compaction.commit(opened.dataset, rewritten)


def _answer(
    opened: MaintainedTable, metrics: CompactionMetrics | None, tasks: int, started: float
) -> CompactionResult:
    return CompactionResult(
        table=str(opened.target.id),
        version=opened.dataset.version,
        previous_version=opened.version,
        fragments_removed=metrics.fragments_removed if metrics else 0,
        fragments_added=metrics.fragments_added if metrics else 0,
        files_removed=metrics.files_removed if metrics else 0,
        files_added=metrics.files_added if metrics else 0,
        tasks=tasks,
        seconds=round(time.monotonic() - started, 3),
        committed=metrics is not None,
    )


def _sentence(result: CompactionResult) -> str:
    if not result.committed:
        return f"table {result.table}: nothing to compact, version {result.version} stands"
    return (
        f"table {result.table}: committed version {result.version}, {result.fragments_removed} fragments are "
        f"{result.fragments_added} now, in {result.seconds:.1f} s"
    )
