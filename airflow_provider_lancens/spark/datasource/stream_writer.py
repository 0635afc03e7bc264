"""Epochs of a streaming query, each committed once: ``df.writeStream.format("lancens")``.

For each epoch, Spark makes one writer that it pickles for the executors, and another that commits. The first
plans the write when it is pickled; the second gets that plan with the messages of the executors, which also
tell the query's id: only they know it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.spark.commit.write_lease import WriteLease
from airflow_provider_lancens.spark.datasource.source_writer import check_location, planned
from airflow_provider_lancens.spark.keys import look_up
from airflow_provider_lancens.spark.streaming.epochs import QUERY_ID, check_same_rows, epoch_key
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec, resolved_table
from airflow_provider_lancens.spark.write.pipeline import skipped_write
from airflow_provider_lancens.spark.write.write_plan import WritePlan, digest_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from airflow_provider_lancens.spark.options import WriteRequest

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class EpochMessage(WriterCommitMessage):
    """The result of one task."""

    query_id: str
    """The query's id, or what was given in its place."""
    plan: WritePlan
    lease: WriteLease
    rows: list[dict[str, Any]]
    """Rows of `executor_tasks.WRITTEN_COLUMNS`."""


@dataclass
class LanceStreamWriter(DataSourceStreamArrowWriter):
    """Writes epochs of one query."""

    namespace: NamespaceSpec
    table: str
    request: WriteRequest
    schema: StructType
    query_id: str | None = None
    """Replaces the query's id."""
    work: tuple[WritePlan, WriteLease] | None = None
    """The plan of an epoch and its lease; None until it is planned."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Plan the write for the executors; Spark pickles a writer twice."""
        if self.work is None:
            request = replace(self.request, digest_rows=True)
            _, self.work = planned(self.namespace, self.table, request, self.schema)
        given = (self.namespace, self.table, self.request, self.schema, self.query_id, self.work)
        return type(self), given

    def write(self, iterator: Iterator[pa.RecordBatch]) -> EpochMessage:
        """Write one partition, on an executor."""
        if self.work is None:
            raise RuntimeError("the write of this epoch isn't planned")
        plan, lease = self.work
        with lease.kept_alive():
            rows = [row for batch in plan.task.run(iterator) for row in batch.to_pylist()]
        return EpochMessage(_running_query() if self.query_id is None else self.query_id, plan, lease, rows)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Commit what the successful attempt of each task wrote, if it wasn't committed before.

        Raises:
            ConcurrentModificationError: (14) it conflicts with other commits; nothing was committed.
            InvalidInputError: (13) the epoch was committed before with other rows.
        """
        done = _messages(messages)
        if not done:
            return
        plan, lease = done[0].plan, done[0].lease
        rows = [row for message in done for row in message.rows]
        key = epoch_key(done[0].query_id, batchId)
        started = time.monotonic()
        with resolved_table(self.namespace, self.table) as target, lease.kept_alive(end=True):
            check_location(target, plan)
            lookup = look_up(target, replace(self.request, idempotency_key=key))
            if lookup.earlier is not None:
                check_same_rows(target.id, key, lookup.earlier, digest_of(rows))
                skipped_write(lookup, lookup.earlier)
                return
            keyed = replace(plan, write=lookup.write, looked_up_to=lookup.version)
            outcome = keyed.commit(target, rows, lease)
            _log.info("%s", outcome.commit.result(target.id, started, committed=outcome.made_here))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002
        """End a failed epoch; its files stay for a clean-up."""
        for message in _messages(messages)[:1]:
            message.lease.end()


def _messages(messages: list[WriterCommitMessage | None]) -> list[EpochMessage]:
    return [message for message in messages if isinstance(message, EpochMessage)]


def _running_query() -> str:
    from pyspark import TaskContext

    context = TaskContext.get()
    found = None if context is None else context.getLocalProperty(QUERY_ID)
    if not found:
        raise spec_errors.InvalidInputError(
            "query_id: Spark doesn't tell which streaming query this is; pass an id that no other query of "
            "the table has, as the option query_id"
        )
    return found
