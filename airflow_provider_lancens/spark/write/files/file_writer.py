"""Write files to a table without a DataFrame: the driver plans, each task reads and writes a part."""

from __future__ import annotations

import functools
import itertools
import operator
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.locations import is_local
from airflow_provider_lancens.namespace.row_errors import RowError
from airflow_provider_lancens.namespace.storage.storage_errors import storage_error
from airflow_provider_lancens.redaction import secret_values
from airflow_provider_lancens.spark.file_source import FileSource
from airflow_provider_lancens.spark.table.column_fit import with_vectors
from airflow_provider_lancens.spark.write.batch_sizing import bytes_of
from airflow_provider_lancens.spark.write.files.file_plan import FilePlan, FileUnit, plan, shares
from airflow_provider_lancens.spark.write.files.file_system import SourceFile, open_file
from airflow_provider_lancens.spark.write.files.formats import ScanRequest
from airflow_provider_lancens.spark.write.files.projection import Projection, stored_schema
from airflow_provider_lancens.spark.write.write_task import WRITTEN_COLUMNS, WriteTask

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from airflow_provider_lancens.spark.write.row_sources import Written


Fit: TypeAlias = "Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]"
"""Converts rows to rows of the table, and raises a RowError for a value that doesn't fit."""

_BYTES_PER_TASK = 64 * 1024 * 1024
"""Used if Spark doesn't report how many tasks it runs in parallel."""


@dataclass(slots=True)
class FileRows:
    """The rows of files, see `row_sources.Rows`."""

    spark: SparkSession
    source: FileSource
    fingerprint: str | None = None
    """The fingerprint of the files as they must be when the write is planned; None allows any."""
    time_zone_known: ClassVar[bool] = True
    """The time zone is UTC, as for every other time in files."""
    match_case: ClassVar[bool] = True
    _planned: FilePlan | None = field(default=None, init=False)

    @property
    def origins(self) -> Mapping[str, str]:
        """The columns' names in the files by their names in the rows; empty before the write was planned."""
        if self._planned is None:
            return {}
        shape = self._planned.shape
        return dict(zip(shape.schema.names, shape.cast.names, strict=True))

    def schema(
        self,
        storage: Mapping[str, str],
        vectors: Mapping[str, int] | None = None,
        table: pa.Schema | None = None,
    ) -> pa.Schema:
        """See `Columns.schema`: the columns of Parquet files are as Spark reads them."""
        shape = self._plan(storage).shape
        if self.source.format != "parquet":
            return with_vectors(shape.schema, vectors or {})
        cast = {name for name, origin in self.origins.items() if origin in self.source.casts}
        return with_vectors(stored_schema(shape.schema, table, cast), vectors or {})

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
        # Planned once, so that the write reads the files that it found at its beginning.
        if self._planned is None:
            options = self.source.options_over(storage)
            zone = self.spark.conf.get("spark.sql.session.timeZone") or "UTC"
            self._planned = plan(self.source, options, zone=zone, fingerprint=self.fingerprint)
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

    def read(self, units: Sequence[FileUnit], fit: Fit) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the units as the table stores them.

        Args:
            units: the units; units of one file are next to each other.
            fit: converts rows to rows of the table.

        Raises:
            InvalidInputError: (13) the content of a file is invalid, or a value doesn't fit; the message
                names the file, the row and the column.
            ConcurrentModificationError: (14) a file was changed since the write was planned.
        """
        for file, pieces in itertools.groupby(units, attrgetter("file")):
            try:
                yield from self._read(file, list(pieces), fit)
            except RowError as error:
                raise spec_errors.InvalidInputError(f"file {file.location}: {error}") from error
            except OSError as error:
                raise storage_error(error, file.location, secret_values(self.options)) from None
            except (pa.ArrowException, ValueError) as error:
                raise spec_errors.InvalidInputError(f"file {file.location}: {error}") from error

    def _read(self, file: SourceFile, pieces: Sequence[FileUnit], fit: Fit) -> Iterator[pa.RecordBatch]:
        shape, folders = self.plan.shape, self.plan.partitions
        values = [pa.scalar(*each) for each in zip(pieces[0].values, folders.types, strict=True)]
        opened = partial(open_file, file, self.options)
        numbers = [piece.number for piece in pieces]
        for found in self.plan.format.read(opened, numbers, self._request(values)):
            batch = _with_columns(found.rows, folders, values)
            rows = shape.matching(batch)
            if not rows.num_rows:
                continue
            try:
                yield from fit(shape.apply([rows]))
            except RowError as error:
                row = found.start + _row_of(error.row, batch, shape)
                raise spec_errors.InvalidInputError(
                    f"file {file.location}: {found.piece}{RowError(row, error.column, error.reason)}"
                ) from error

    def _request(self, values: Sequence[pa.Scalar]) -> ScanRequest:
        shape, files = self.plan.shape, self.plan.files
        inside = [name for name in shape.read if name in files.names]
        columns = inside or files.names[:1]  # any column, for the number of rows
        if shape.condition is None:
            return ScanRequest(columns, files, None)
        folder = [
            pc.field(name) == value if value.is_valid else pc.field(name).is_null()
            for name, value in zip(self.plan.partitions.names, values, strict=True)
        ]
        return ScanRequest(
            columns,
            files,
            shape.pruning,
            frozenset(shape.condition.columns),
            functools.reduce(operator.and_, folder) if folder else None,
            pa.schema([*files, *self.plan.partitions]),
        )


def _with_columns(rows: pa.RecordBatch, columns: pa.Schema, values: Sequence[pa.Scalar]) -> pa.RecordBatch:
    arrays = [
        pa.repeat(value, rows.num_rows) if value.is_valid else pa.nulls(rows.num_rows, value.type)
        for value in values
    ]
    return pa.RecordBatch.from_arrays([*rows.columns, *arrays], schema=pa.schema([*rows.schema, *columns]))


def _row_of(number: int, batch: pa.RecordBatch, shape: Projection) -> int:
    """Return the number in a batch of one of its rows that match the condition."""
    if shape.condition is None:
        return number
    return int(pc.indices_nonzero(shape.mask(batch))[number].as_py())


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
        """Write the shares with these numbers; yield the rows of these results."""
        for number in numbers:
            for batch in self._write(self.shares[number]):
                yield from batch.to_pylist()

    def _write(self, share: Sequence[FileUnit]) -> Iterator[pa.RecordBatch]:
        rows = self.reader.read(share, partial(self.write.fitted, conformed=True))
        if is_local(self.write.dataset.location) and all(is_local(unit.file.location) for unit in share):
            yield from self.write.write(rows)
            return
        with closing(read_ahead(rows)) as read:
            yield from self.write.write(read)


AHEAD_BYTES = 32 * 1024 * 1024
"""Bound of the batches that wait; a larger one waits alone."""


def read_ahead(batches: Iterator[pa.RecordBatch], most: int = AHEAD_BYTES) -> Generator[pa.RecordBatch]:
    """Yield the batches, which a thread reads while the caller works on earlier ones.

    Args:
        batches: the source; it is read by one thread, and not after this generator was closed.
        most: how many bytes of them may wait.

    Raises:
        Exception: what the source raised, after the batches before.
    """
    ahead = _ReadAhead(batches, most)
    thread = threading.Thread(target=ahead.fill, name="lance-read-ahead", daemon=True)
    thread.start()
    try:
        yield from ahead.take()
    finally:
        ahead.stop()
        thread.join()


class _ReadAhead:
    def __init__(self, batches: Iterator[pa.RecordBatch], most: int) -> None:
        self._batches, self._most = batches, most
        self._waiting: deque[pa.RecordBatch] = deque()
        self._bytes = 0
        self._changed = threading.Condition()
        self._ended = self._stopped = False
        self._error: BaseException | None = None

    def fill(self) -> None:
        """Read until the end, an error, or `stop`."""
        try:
            for batch in self._batches:
                if not self._add(batch):
                    break
        except BaseException as error:  # noqa: BLE001 raised where the batches are taken
            self._error = error
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def take(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches in order, then raise the source's error."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._ended)
                if not self._waiting:
                    break
                batch = self._waiting.popleft()
                self._bytes -= bytes_of(batch)
                self._changed.notify_all()
            yield batch
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Have the thread end after the batch that it is reading."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def _add(self, batch: pa.RecordBatch) -> bool:
        size = bytes_of(batch)
        with self._changed:
            self._changed.wait_for(
                lambda: self._stopped or not self._waiting or self._bytes + size <= self._most
            )
            self._waiting.append(batch)
            self._bytes += size
            self._changed.notify_all()
            return not self._stopped
