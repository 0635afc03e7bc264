"""A table as a stream of the rows that it gains: ``spark.readStream.format("lancens")``."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.spark.changes.appended_rows import VersionReader, VersionRows
from airflow_provider_lancens.spark.changes.columns_at import readable_columns
from airflow_provider_lancens.spark.changes.version_columns import VersionColumns
from airflow_provider_lancens.spark.read.table_reader import open_version, parse_filter
from airflow_provider_lancens.spark.streaming.appended_stream import AppendedStream
from airflow_provider_lancens.spark.streaming.stream_offset import StreamOffset
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec, resolved_table
from airflow_provider_lancens.spark.types import arrow_schema, spark_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from airflow_provider_lancens.spark.datasource.source_options import StreamReadConfig

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

    def __init__(self, namespace: NamespaceSpec, config: StreamReadConfig, schema: StructType) -> None:
        """Take what the DataFrame was created with; the table is opened when the driver asks for an offset.

        Args:
            namespace: the namespace of the table.
            config: the options.
            schema: the columns, also if the table has got others since.
        """
        self.namespace = namespace
        self.config = config
        self.schema = schema
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
        opened.columns.add(batch.after, batch.last, batch.changes)
        names = {version: opened.columns.names_in(version) for version in batch.versions}
        groups = [[replace(part, names=names[part.version]) for part in one] for one in batch.groups]
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
        """Pickle the configuration alone: what is open belongs to the driver."""
        return type(self), (self.namespace, self.config, self.schema)

    def _advanced(self, start: StreamOffset, max_rows: int | None) -> StreamOffset:
        newest = self._newest_version() if self._last is None else self._last
        if newest == start.version and not start.snapshot:
            return start
        return self._open().stream.advance(start, newest, max_rows)

    def _newest_version(self) -> int:
        polled_at, newest = self._newest
        if time.monotonic() - polled_at >= _POLL_SECONDS:
            newest = self._open().stream.target.latest_version() or 0
            self._newest = (time.monotonic(), newest)
        return newest

    def _open(self) -> _Opened:
        if self._opened is None:
            target = self._resources.enter_context(resolved_table(self.namespace, self.config.table))
            newest = open_version(target, None)
            readable_columns(target, newest, self.schema.names)
            schema = arrow_schema(self.schema)
            text = self.config.filter
            condition = None if text is None else parse_filter(target, newest, text)
            lance_sql = None if condition is None else condition.lance_sql
            self._opened = _Opened(
                AppendedStream(target, self.config.skip_change_commits),
                VersionReader(target.dataset, schema, lance_sql),
                VersionColumns(target, newest, schema, condition),
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


def stream_schema(namespace: NamespaceSpec, config: StreamReadConfig) -> StructType:
    """Return the columns of a stream: those of the newest version.

    Raises:
        LanceNamespaceError: see `read_table`.
    """
    with resolved_table(namespace, config.table) as target:
        return spark_schema(readable_columns(target, open_version(target, None), config.columns))


def stream_reader(
    namespace: NamespaceSpec, config: StreamReadConfig, schema: StructType
) -> LanceStreamReader:
    """Return the reader that this PySpark can use.

    Args:
        namespace: the namespace of the table.
        config: the options.
        schema: the columns of the DataFrame.

    Raises:
        InvalidInputError: (13) a limit is given, and PySpark can't have one.
    """
    if importlib.util.find_spec(_LIMITS) is not None:
        from airflow_provider_lancens.spark.datasource.limited_stream_reader import LimitedStreamReader

        return LimitedStreamReader(namespace, config, schema)
    if config.max_rows is not None:
        raise spec_errors.InvalidInputError("max_rows_per_batch: requires PySpark 4.2 or newer; leave it out")
    return UnlimitedStreamReader(namespace, config, schema)
