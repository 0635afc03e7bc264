"""The data source's batches: tables that are read at one version, and rows that are written once."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.spark.commit.write_lease import WriteLease, acquire_lease
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec, ResolvedTable, resolved_table
from airflow_provider_lancens.spark.write.row_sources import FrameColumns
from airflow_provider_lancens.spark.write.schema_evolution import with_merged_columns
from airflow_provider_lancens.spark.write.write_context import WriteContext
from airflow_provider_lancens.spark.write.write_rows import WritePlan, skipped_write

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from airflow_provider_lancens.spark.options import WriteRequest
    from airflow_provider_lancens.spark.read import ReadTask

_log = logging.getLogger(__name__)


class LanceReader(DataSourceReader):
    """Reads a task's groups.

    It accepts no filters from Spark, which reuses the filters of one query: later queries of the same
    DataFrame, and other scans of one query, would read only these rows if they push down no filters
    themselves.
    """

    def __init__(self, task: ReadTask) -> None:
        """Take the task that `plan_read` returned."""
        self.task = task

    def partitions(self) -> list[InputPartition]:
        """Return a partition per group; None stands for a table of no rows, as Spark needs at least one."""
        return [InputPartition(number) for number in range(len(self.task.groups))] or [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition, on an executor."""
        return iter(()) if partition.value is None else self.task.read(partition.value)


@dataclass(frozen=True)
class TaskResultMessage(WriterCommitMessage):
    """The result of one task: rows of `write_task.WRITTEN_COLUMNS`."""

    rows: list[dict[str, Any]]


@dataclass(frozen=True)
class LanceWriter(DataSourceArrowWriter):
    """One `save()`."""

    namespace: NamespaceSpec
    table: str
    started: float
    """When the write began, by the monotonic clock of the driver's machine."""
    work: tuple[WritePlan, WriteLease] | None
    """The plan and its lease; None if the write was already committed under the key."""

    @classmethod
    def plan(cls, namespace: NamespaceSpec, table: str, request: WriteRequest, schema: StructType) -> Self:
        """Plan the write, and acquire its lease.

        Raises:
            LanceNamespaceError: see `planned`.
        """
        return cls(namespace, table, *planned(namespace, table, request, schema))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskResultMessage:
        """Write one partition, on an executor; nothing if the write was already committed."""
        if self.work is None:
            return TaskResultMessage([])
        plan, lease = self.work
        with lease.kept_alive():
            return TaskResultMessage([row for batch in plan.task.run(iterator) for row in batch.to_pylist()])

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit what the successful attempt of each task wrote.

        Raises:
            ConcurrentModificationError: (14) it conflicts with other commits; nothing was committed.
        """
        if self.work is None:
            return
        plan, lease = self.work
        rows = [row for message in messages if isinstance(message, TaskResultMessage) for row in message.rows]
        with resolved_table(self.namespace, self.table) as target, lease.kept_alive():
            check_location(target, plan)
            outcome = plan.commit(target, rows, lease)
        _log.info("%s", outcome.commit.result(target, self.started, outcome.outcome))
        lease.end()

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002 files stay for a clean-up
        """End a failed write; Spark also calls this after a commit that raised."""
        if self.work is not None:
            self.work[1].end()


def planned(
    namespace: NamespaceSpec, table: str, request: WriteRequest, schema: StructType
) -> tuple[float, tuple[WritePlan, WriteLease] | None]:
    """Plan a write, and acquire its lease.

    Returns:
        When it began, by the monotonic clock, and the plan with the lease; None instead of these if the write
        was already committed under its key.

    Raises:
        LanceNamespaceError: see `WriteContext.begin`, `with_merged_columns` and `WritePlan.of`.
    """
    with resolved_table(namespace, table) as target:
        context = WriteContext.begin(target, request)
        started = context.lookup.started
        if context.earlier is not None:
            skipped_write(context, context.earlier)
            return started, None
        columns = FrameColumns(schema)
        if request.change.schema_mode == "merge":
            context = with_merged_columns(context, columns)
        plan = WritePlan.of(context, columns)
        return started, (plan, acquire_lease(target.dataset))


def check_location(target: ResolvedTable, plan: WritePlan) -> None:
    """Check that a table is where it was when a write was planned.

    Raises:
        ConcurrentModificationError: (14) it isn't.
    """
    if target.dataset.location != plan.task.dataset.location:
        raise spec_errors.ConcurrentModificationError(
            f"table {target.id}: its location was {plan.task.dataset.location} when this write "
            f"began, but is {target.dataset.location} now; nothing was committed, run it again"
        )
