"""Files as the rows of a write: the driver plans, each task reads its share and writes fragments of it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING

import pyarrow as pa

from airflow_provider_lancens.spark.files.formats import Wanted
from airflow_provider_lancens.spark.files.plan import Plan, Unit, plan, shares
from airflow_provider_lancens.spark.files.source import FileSource
from airflow_provider_lancens.spark.files.store import open_file
from airflow_provider_lancens.spark.history import Counts
from airflow_provider_lancens.spark.rows import Written, run_on_executors
from airflow_provider_lancens.spark.tasks import WriteTask
from airflow_provider_lancens.spark.types import with_vectors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BYTES_PER_TASK = 64 * 1024 * 1024
"""Where Spark doesn't tell how many tasks it runs side by side."""


@dataclass(slots=True)
class FileRows:
    """The rows of files: see `spark.rows.Rows`."""

    spark: SparkSession
    source: FileSource
    _planned: Plan | None = field(default=None, init=False)

    def schema(self, storage: Mapping[str, str], vectors: Mapping[str, int] | None = None) -> pa.Schema:
        """See `Columns.schema`."""
        return with_vectors(self._plan(storage).shape.schema, vectors or {})

    def write(self, task: WriteTask) -> Written:
        """See `Rows.write`."""
        planned = self._plan(task.dataset.storage_options)
        cut = shares(planned.units, self.source.tasks or self._side_by_side(planned.units))
        if not cut:
            return Written([], Counts())
        reader = FileReader(planned, self.source.options_over(task.dataset.storage_options))
        work = FileTask(task, reader, cut)
        return run_on_executors(self.spark.range(0, len(cut), 1, len(cut)), work.run)

    def _plan(self, storage: Mapping[str, str]) -> Plan:
        # The files as they were when the write began: looked at once.
        if self._planned is None:
            self._planned = plan(self.source, self.source.options_over(storage))
        return self._planned

    def _side_by_side(self, units: Iterable[Unit]) -> int:
        context = getattr(self.spark, "_sc", None)  # Spark Connect has none
        if context is not None:
            return int(context.defaultParallelism)
        return 1 + sum(unit.bytes for unit in units) // _BYTES_PER_TASK


@dataclass(frozen=True, slots=True)
class FileReader:
    """Reads units of the files. It pickles, without their list."""

    plan: Plan
    options: Mapping[str, str] = field(repr=False)

    def read(self, units: Sequence[Unit]) -> Iterator[pa.RecordBatch]:
        """The rows of the units as the table gets them.

        Raises:
            ValueError: a file holds what it can't; the message names it.
        """
        for location, pieces in itertools.groupby(units, attrgetter("location")):
            try:
                yield from self.plan.shape.apply(self._read(location, list(pieces)))
            except (pa.ArrowException, ValueError) as error:
                raise ValueError(f"file {location}: {error}") from error

    def _read(self, location: str, pieces: Sequence[Unit]) -> Iterator[pa.RecordBatch]:
        shape = self.plan.shape
        condition = shape.condition and shape.condition.expression
        wanted = Wanted(shape.read, self.plan.files, condition)
        with open_file(location, pieces[0].file_bytes, self.options) as file:
            yield from self.plan.format.read(file, [piece.number for piece in pieces], wanted)


@dataclass(frozen=True, slots=True)
class FileTask:
    """Write the share of the files whose number comes in."""

    write: WriteTask
    reader: FileReader
    shares: Sequence[Sequence[Unit]]

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yields what `WriteTask.run` does."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from self.write.run(self.reader.read(self.shares[number]))
