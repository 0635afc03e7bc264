"""Writing by the data source: planned on the driver, written on the executors, committed on the driver.

Spark pickles the writer from one to the next. The mark of the running write is placed with the plan,
kept alive by whichever task is writing, and taken away by the commit or the abort.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from lance_namespace.errors import ConcurrentModificationError
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from airflow_provider_lancens.spark.answers import answer
from airflow_provider_lancens.spark.commit import Outcome
from airflow_provider_lancens.spark.phases import WriteOrder, WritePlan
from airflow_provider_lancens.spark.rows import FrameColumns, gathered
from airflow_provider_lancens.spark.running import Running, begin
from airflow_provider_lancens.spark.target import NamespaceSpec, Target, described

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class Answered(WriterCommitMessage):
    """What one task wrote: rows of `tasks.WRITTEN_COLUMNS`."""

    rows: list[dict[str, object]]


@dataclass(frozen=True)
class LanceWriter(DataSourceArrowWriter):
    """One `save()`."""

    namespace: NamespaceSpec
    table: str
    started: float
    """By the monotonic clock of the driver's machine."""
    work: tuple[WritePlan, Running] | None
    """What to do, and its mark; None where an earlier commit under the key has done it."""

    @classmethod
    def plan(cls, namespace: NamespaceSpec, table: str, order: WriteOrder, schema: StructType) -> Self:
        """Settle all but the rows.

        Raises:
            LanceNamespaceError: see `WriteOrder.plan`.
        """
        started = time.monotonic()
        with described(namespace, table) as target:
            plan = order.plan(target, FrameColumns(schema))
            if isinstance(plan, Outcome):
                answer(target.id, plan, started)
                return cls(namespace, table, started, None)
            return cls(namespace, table, started, (plan, begin(target.dataset)))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Answered:
        """Write one partition, on an executor; nothing of it where the rows are there already."""
        if self.work is None:
            return Answered([])
        plan, mark = self.work
        with mark.kept_alive():
            return Answered([row for batch in plan.task.run(iterator) for row in batch.to_pylist()])

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit what the successful attempt of each task wrote.

        Raises:
            ConcurrentModificationError: (14) others leave no room for it; nothing was committed.
        """
        if self.work is None:
            return
        plan, mark = self.work
        rows = [row for message in messages if isinstance(message, Answered) for row in message.rows]
        with described(self.namespace, self.table) as target, mark.kept_alive():
            _check_place(target, plan)
            outcome = plan.commit(target, gathered(rows), mark)
        answer(target.id, outcome, self.started)
        mark.end()

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002 files stay for a clean-up
        """End a write that failed; Spark calls this after a commit that raised, too."""
        if self.work is not None:
            self.work[1].end()


def _check_place(target: Target, plan: WritePlan) -> None:
    if target.dataset.location != plan.task.dataset.location:
        raise ConcurrentModificationError(
            f"table {target.id}: it was at {plan.task.dataset.location} when this write began, and is at "
            f"{target.dataset.location} now; nothing was committed, run it again"
        )
