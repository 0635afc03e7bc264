"""The data source's streams: tables that are read as streams, and epochs that are written once."""

from __future__ import annotations

import importlib.util
import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.spark.changes.appended_rows import VersionReader, VersionRows
from airflow_provider_lancens.spark.changes.changed_rows import readable_columns
from airflow_provider_lancens.spark.commit.write_lease import WriteLease
from airflow_provider_lancens.spark.datasource.batch_source import check_location, planned
from airflow_provider_lancens.spark.streaming.appended_stream import AppendedStream, StreamOffset
from airflow_provider_lancens.spark.streaming.foreach_batch import QUERY_ID, check_same_rows, epoch_key
from airflow_provider_lancens.spark.streaming.stream_columns import VersionColumns
from airflow_provider_lancens.spark.table.opened_version import open_version, parse_filter
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec, ResolvedTable, resolved_table
from airflow_provider_lancens.spark.types import arrow_schema, spark_schema
from airflow_provider_lancens.spark.write.write_context import WriteContext
from airflow_provider_lancens.spark.write.write_rows import WritePlan, digest_of

if TYPE_CHECKING:
    import pyarrow as pa
    from lance import LanceDataset
    from pyspark.sql.types import StructType

    from airflow_provider_lancens.spark.datasource.source_options import StreamReadConfig
    from airflow_provider_lancens.spark.options import WriteRequest

_log = logging.getLogger(__name__)


_POLL_SECONDS = 1.0
"""How old the newest known version may be: without a trigger, Spark asks for it a hundred times a second."""
_LIMITS = "pyspark.sql.streaming.datasource"
"""The module of PySpark 4.2 by which a stream can have a limit per micro-batch."""


@dataclass(frozen=True, slots=True)
class _Opened:
    """What a reader needs of its table, on the driver."""

    stream: AppendedStream
    reader: VersionReader
    columns: VersionColumns


class LanceStreamReader(DataSourceStreamReader):
    """Reads the rows that a table gains. Spark keeps one for a query, and pickles others for its tasks."""

    def __init__(
        self, namespace: NamespaceSpec, config: StreamReadConfig, schema: StructType, loaded: int | None
    ) -> None:
        """Store the DataFrame's arguments; the table is opened when the driver asks for an offset.

        Args:
            namespace: the namespace of the table.
            config: the options.
            schema: the columns, also if the table has got others since.
            loaded: the version whose columns they are; None is the newest.
        """
        self.namespace = namespace
        self.config = config
        self.schema = schema
        self.loaded = loaded
        self._resources = ExitStack()
        self._opened: _Opened | None = None
        self._newest = (-_POLL_SECONDS, 0)
        self._last: int | None = None

    def initialOffset(self) -> dict[str, Any]:
        """Return where a query without a checkpoint starts."""
        return self._open().stream.start(self.config.after_version).as_dict()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return what each task of a micro-batch reads."""
        opened = self._open()
        batch = opened.stream.batch(StreamOffset.parse(start), StreamOffset.parse(end))
        opened.columns.add(batch.first, batch.after, batch.last, batch.changes)
        names = {version: opened.columns.names_in(version) for version in batch.versions}
        groups = [[replace(part, names=names[part.version]) for part in group] for group in batch.groups]
        return [InputPartition((opened.reader, group)) for group in groups]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition, on an executor."""
        reader: VersionReader
        parts: list[VersionRows]
        reader, parts = partition.value
        for part in parts:
            yield from reader.read(part)

    def stop(self) -> None:
        """Close the namespace."""
        self._resources.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle only the configuration: open objects belong to the driver."""
        return type(self), (self.namespace, self.config, self.schema, self.loaded)

    def _advanced(self, start: StreamOffset, max_rows: int | None) -> StreamOffset:
        newest = self._newest_version() if self._last is None else self._last
        return self._open().stream.advance(start, newest, max_rows)

    def _newest_version(self) -> int:
        polled_at, newest = self._newest
        if time.monotonic() - polled_at >= _POLL_SECONDS:
            newest = self._open().stream.target.latest_version() or 0
            self._newest = (time.monotonic(), newest)
        return newest

    def _loaded_version(self, target: ResolvedTable) -> LanceDataset:
        """Open the version whose columns the DataFrame has, or if that was cleaned up, the newest one."""
        newest = open_version(target, None)
        if self.loaded in (None, newest.version):
            return newest
        with suppress(spec_errors.TableVersionNotFoundError):
            return open_version(target, self.loaded)
        if readable_columns(target, newest, self.schema.names) != arrow_schema(self.schema):
            raise spec_errors.TableVersionNotFoundError(
                f"table {target.id}: version {self.loaded}, whose columns the DataFrame has, was cleaned up, "
                f"and version {newest.version} has other types; load the DataFrame again, and start the "
                "query with the same checkpointLocation"
            )
        return newest

    def _open(self) -> _Opened:
        if self._opened is None:
            target = self._resources.enter_context(resolved_table(self.namespace, self.config.table))
            loaded = self._loaded_version(target)
            readable_columns(target, loaded, self.schema.names)
            schema = arrow_schema(self.schema)
            text = self.config.filter
            condition = None if text is None else parse_filter(target, loaded, text)
            lance_sql = None if condition is None else condition.lance_sql
            self._opened = _Opened(
                AppendedStream(target, self.config.skip_change_commits),
                VersionReader(target.dataset, schema, lance_sql),
                VersionColumns(target, loaded, schema, condition),
            )
        return self._opened


class UnlimitedStreamReader(LanceStreamReader):
    """For PySpark 4.1, which doesn't say where a micro-batch starts when it asks where it ends."""

    _end: StreamOffset | None = None

    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override] # as it was before 4.2
        """Return the end of the next micro-batch: the newest version."""
        stream, newest = self._open().stream, self._newest_version()
        if self._end is None or self._end.version != newest:
            self._end = stream.end_at(newest)
        return self._end.as_dict()


def plan_stream(namespace: NamespaceSpec, config: StreamReadConfig) -> tuple[StructType, int]:
    """Return the columns of a stream, which are the newest version's, and that version.

    Raises:
        LanceNamespaceError: see `Table.read`.
    """
    with resolved_table(namespace, config.table) as target:
        newest = open_version(target, None)
        return spark_schema(readable_columns(target, newest, config.columns)), newest.version


def stream_reader(
    namespace: NamespaceSpec, config: StreamReadConfig, schema: StructType, loaded: int | None = None
) -> LanceStreamReader:
    """Return the reader that this PySpark can use.

    Args:
        namespace: the namespace of the table.
        config: the options.
        schema: the columns of the DataFrame.
        loaded: the version whose columns they are; None is the newest.

    Raises:
        InvalidInputError: (13) a limit is given, and PySpark can't have one.
    """
    if importlib.util.find_spec(_LIMITS) is not None:
        from airflow_provider_lancens.spark.datasource.limited_stream_reader import LimitedStreamReader

        return LimitedStreamReader(namespace, config, schema, loaded)
    if config.max_rows is not None:
        raise spec_errors.InvalidInputError("max_rows_per_batch: requires PySpark 4.2 or newer; leave it out")
    return UnlimitedStreamReader(namespace, config, schema, loaded)


@dataclass(frozen=True)
class EpochMessage(WriterCommitMessage):
    """The result of one task."""

    query_id: str
    """The query's id, or what was given in its place."""
    plan: WritePlan
    lease: WriteLease
    rows: list[dict[str, Any]]
    """Rows of `write_task.WRITTEN_COLUMNS`."""


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
            identity = replace(self.request.identity, key=key, on_existing_key="skip")
            context = WriteContext.begin(target, replace(self.request, identity=identity))
            if context.earlier is not None:
                check_same_rows(target.id, key, context.earlier, digest_of(rows))
                # No execution writes an epoch once more: whichever repeats it, it finds its commit.
                found = replace(context.lookup.found_result(context.earlier), outcome="found")
                _log.info("%s; Spark repeats its epoch", found)
                return
            keyed = replace(plan, write=context.write, looked_up_to=context.lookup.version)
            outcome = keyed.commit(target, rows, lease)
            _log.info("%s", outcome.commit.result(target, started, outcome.outcome))

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
