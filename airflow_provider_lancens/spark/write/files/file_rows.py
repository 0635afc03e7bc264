"""Rows of files for a write: the driver plans, each task reads its share and writes it as fragments."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from airflow_provider_lancens.namespace.locations import is_local
from airflow_provider_lancens.namespace.storage.storage_errors import storage_error
from airflow_provider_lancens.redaction import secret_values
from airflow_provider_lancens.spark.file_source import FileSource
from airflow_provider_lancens.spark.types import with_vectors
from airflow_provider_lancens.spark.write.executor_tasks import WRITTEN_COLUMNS, WriteTask
from airflow_provider_lancens.spark.write.files.file_plan import FilePlan, FileUnit, plan, shares
from airflow_provider_lancens.spark.write.files.file_system import open_file
from airflow_provider_lancens.spark.write.files.formats import ScanRequest
from airflow_provider_lancens.spark.write.read_ahead import read_ahead

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from airflow_provider_lancens.spark.write.row_sources import Written

_BYTES_PER_TASK = 64 * 1024 * 1024
"""Used if Spark doesn't report how many tasks it runs in parallel."""


@dataclass(slots=True)
class FileRows:
    """The rows of files, see `row_sources.Rows`."""

    spark: SparkSession
    source: FileSource
    time_zone_known: ClassVar[bool] = True
    """The time zone is UTC, as for every other time in files."""
    match_case: ClassVar[bool] = True
    _planned: FilePlan | None = field(default=None, init=False)

    @property
    def origins(self) -> Mapping[str, str]:
        """The columns of the files by those of the rows; empty before the write was planned."""
        if self._planned is None:
            return {}
        shape = self._planned.shape
        return dict(zip(shape.schema.names, shape.cast.names, strict=True))

    def schema(self, storage: Mapping[str, str], vectors: Mapping[str, int] | None = None) -> pa.Schema:
        """See `Columns.schema`."""
        return with_vectors(self._plan(storage).shape.schema, vectors or {})

    def write(self, task: WriteTask) -> Written:
        """See `Rows.write`."""
        planned = self._plan(task.dataset.storage_options)
        parts = shares(planned.units, self.source.tasks or self._parallelism(planned.units))
        if not parts:
            return []
        reader = FileReader(planned, self.source.options_over(task.dataset.storage_options))
        work = FileTask(task, reader, parts)
        context = self._context()
        if context is None:
            frame = self.spark.range(0, len(parts), 1, len(parts))
            return frame.mapInArrow(work.run, WRITTEN_COLUMNS).collect()
        # Without Spark SQL, whose planning takes longer than a small write.
        written: Written = (
            context.parallelize(range(len(parts)), len(parts)).mapPartitions(work.run_numbers).collect()
        )
        return written

    def _context(self) -> SparkContext | None:
        return getattr(self.spark, "_sc", None)  # Spark Connect has none

    def _plan(self, storage: Mapping[str, str]) -> FilePlan:
        # Planned once, so that the files are those at the beginning of the write.
        if self._planned is None:
            self._planned = plan(self.source, self.source.options_over(storage))
        return self._planned

    def _parallelism(self, units: Iterable[FileUnit]) -> int:
        context = self._context()
        if context is not None:
            return int(context.defaultParallelism)
        return 1 + sum(unit.bytes for unit in units) // _BYTES_PER_TASK


@dataclass(frozen=True, slots=True)
class FileReader:
    """Reads units of the files. Picklable, without their list."""

    plan: FilePlan
    options: Mapping[str, str] = field(repr=False)

    def read(self, units: Sequence[FileUnit]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the units as the table stores them.

        Raises:
            ValueError: the content of a file is invalid; the message names it.
        """
        for location, pieces in itertools.groupby(units, attrgetter("location")):
            try:
                yield from self.plan.shape.apply(self._read(location, list(pieces)))
            except OSError as error:
                raise storage_error(error, location, secret_values(self.options)) from None
            except (pa.ArrowException, ValueError) as error:
                raise ValueError(f"file {location}: {error}") from error

    def _read(self, location: str, pieces: Sequence[FileUnit]) -> Iterator[pa.RecordBatch]:
        shape = self.plan.shape
        condition = shape.condition and shape.condition.expression
        wanted = ScanRequest(shape.read, self.plan.files, condition)
        with open_file(location, pieces[0].file_bytes, self.options) as file:
            yield from self.plan.format.read(file, [piece.number for piece in pieces], wanted)


@dataclass(frozen=True, slots=True)
class FileTask:
    """Write the shares of the files with the given numbers."""

    write: WriteTask
    reader: FileReader
    shares: Sequence[Sequence[FileUnit]]

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the shares with the numbers in `batches`; yield the results of `WriteTask.run`."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from self._write(self.shares[number])

    def run_numbers(self, numbers: Iterable[int]) -> Iterator[dict[str, Any]]:
        """Write the shares with these numbers; yield the rows of those results."""
        for number in numbers:
            for batch in self._write(self.shares[number]):
                yield from batch.to_pylist()

    def _write(self, share: Sequence[FileUnit]) -> Iterator[pa.RecordBatch]:
        rows = self.reader.read(share)
        if is_local(self.write.dataset.location) and all(is_local(unit.location) for unit in share):
            yield from self.write.run(rows)
            return
        with closing(read_ahead(rows)) as read:
            yield from self.write.run(read)
