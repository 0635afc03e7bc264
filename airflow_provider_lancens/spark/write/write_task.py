"""A write's task on an executor: it converts and checks the rows of a partition, and writes fragments."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.locations import is_local
from airflow_provider_lancens.namespace.row_errors import RowError
from airflow_provider_lancens.namespace.storage.vended_options import snapshot
from airflow_provider_lancens.spark.storage_failures import storage_failures
from airflow_provider_lancens.spark.table.column_fit import ColumnMatch
from airflow_provider_lancens.spark.table.dataset_ref import DatasetRef, vendor_arguments
from airflow_provider_lancens.spark.table.row_casts import conform, merged, uncut_files, without_empty
from airflow_provider_lancens.spark.table.row_hashes import RowDigest
from airflow_provider_lancens.spark.write.task_progress import WriteProgress
from airflow_provider_lancens.spark.write.upsert_task import DeletedKeys, KeptColumns, with_kept_columns

if TYPE_CHECKING:
    from lance import FragmentMetadata, LanceDataset

    from airflow_provider_lancens.conditions import Condition


def matching(batches: Iterable[pa.RecordBatch], condition: Condition) -> Iterator[pa.RecordBatch]:
    """Yield the batches, each after all of its rows were found to match.

    Args:
        batches: the rows.
        condition: the condition on them.

    Raises:
        InvalidInputError: (13) a row doesn't match; a row for which the condition is null doesn't either.
    """
    for batch in batches:
        others = batch.filter(pc.invert(pc.fill_null(condition.mask(batch), False)))
        if others.num_rows:
            _refuse(condition, others.select(sorted(condition.columns)), others.num_rows)
        yield batch


def _refuse(condition: Condition, others: pa.RecordBatch, count: int) -> None:
    from lance_namespace.errors import InvalidInputError  # takes a second: only where it is raised

    example = others.slice(0, 1).to_pylist()[0]
    raise InvalidInputError(
        f"where: rows that don't match {condition.text!r}, such as {example} ({count} in one batch); "
        "filter the rows, or change the condition; nothing was committed"
    )


WriteRows = Callable[[pa.RecordBatchReader], "list[FragmentMetadata]"]
"""Writes all rows of a reader, as one fragment or more."""

AT_ONCE = 2
"""Calls that run in parallel: one takes rows, the other one uploads the rest of its last file."""
_ROWS_OF_A_CALL = 1024 * 1024
"""Minimum number of rows: each call costs a few requests."""


def write_overlapping(
    write: WriteRows, batches: Iterator[pa.RecordBatch], schema: pa.Schema, max_rows_per_file: int
) -> list[FragmentMetadata]:
    """Write rows by calls that overlap, each of which ends with a file.

    Args:
        write: writes rows as files of `max_rows_per_file`; it is called from several threads.
        batches: the rows.
        schema: their columns.
        max_rows_per_file: the number of rows after which a file ends.

    Returns:
        The fragments, in the order of the rows; none if there are no rows.

    Raises:
        Exception: the first error of a call, after all others have ended.
    """
    rows = _Rows(uncut_files(batches, max_rows_per_file))
    calls: list[Future[list[FragmentMetadata]]] = []
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="lance-write") as pool:
        while rows.more():
            call = _Call(rows, max(1, _ROWS_OF_A_CALL // max_rows_per_file) * max_rows_per_file)
            calls.append(pool.submit(call.run, write, schema))
            call.took_its_rows.wait()
    if rows.error is not None:
        raise rows.error
    return [fragment for call in calls for fragment in call.result()]


class _Rows:
    """The rows of all calls; one thread at a time takes of them."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._next: pa.RecordBatch | None = None
        self.error: BaseException | None = None
        """The first error of a call, after which no other one should go on."""

    def more(self) -> bool:
        """Whether there are rows for another call."""
        if self.error is not None:
            return False
        while self._next is None or not self._next.num_rows:
            self._next = next(self._batches, None)
            if self._next is None:
                return False
        return True

    def take(self, most: int) -> pa.RecordBatch | None:
        """Return the next rows; None if there are no more."""
        if not self.more() or self._next is None:
            return None
        batch, self._next = self._next.slice(0, most), self._next.slice(most)
        return batch


class _Call:
    def __init__(self, rows: _Rows, most: int) -> None:
        self._rows, self._most = rows, most
        self.took_its_rows = threading.Event()

    def run(self, write: WriteRows, schema: pa.Schema) -> list[FragmentMetadata]:
        try:
            return write(pa.RecordBatchReader.from_batches(schema, self._batches()))
        except BaseException as error:
            if self._rows.error is None:
                self._rows.error = error
            raise
        finally:
            self.took_its_rows.set()

    def _batches(self) -> Iterator[pa.RecordBatch]:
        missing = self._most
        while missing and (batch := self._rows.take(missing)) is not None:
            missing -= batch.num_rows
            if not missing:
                # Before the last batch is passed: Lance finishes a file that is full before it asks for more.
                self.took_its_rows.set()
            yield batch
        if self._rows.error is not None:
            raise InterruptedError("another file of this task could not be written")


WRITTEN_COLUMNS = "fragment string, rows long, files long, bytes long, deleted binary, digest long"
"""Columns of a write task's result, which has a row per fragment, as Spark DDL; a row without a fragment has
the keys of rows to delete, or the digest of all rows of the partition."""

_WRITTEN = pa.schema(
    [
        ("fragment", pa.string()),
        ("rows", pa.int64()),
        ("files", pa.int64()),
        ("bytes", pa.int64()),
        ("deleted", pa.binary()),
        ("digest", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True)
class WriteTask:
    """Write one partition as uncommitted fragments.

    A task that Spark runs again leaves unreferenced files, never rows: only the fragments of the attempt
    whose result reaches the driver are committed.
    """

    dataset: DatasetRef
    schema: pa.Schema
    appends_to: int | None
    """The version whose columns to keep; None if the columns are new."""
    max_rows_per_file: int
    data_storage_version: str | None
    manifest: bytes | None = field(default=None, repr=False)
    """The manifest of the version `appends_to`; None if each task is to read it."""
    progress: WriteProgress | None = field(default=None, repr=False)
    """Where to report how far the task is."""
    condition: Condition | None = None
    """The condition that all rows must match; None allows any."""
    match: ColumnMatch | None = None
    """Where the columns are in the rows; None if the rows have all of them by the same names."""
    deletes: pa.Schema | None = None
    """The key columns, if the rows say which of them are deletions."""
    kept: KeptColumns | None = None
    """The columns whose values existing rows keep."""
    digests: bool = False
    """Whether to digest the rows, see `row_hashes`."""
    opened: LanceDataset | None = field(default=None, repr=False, compare=False)
    """The version `appends_to`, if the task is run by the process that has opened it."""

    @property
    def targets(self) -> dict[str, pa.Field]:
        """The columns to write by the names of the rows' columns."""
        names = dict.fromkeys(self.schema.names) if self.match is None else self.match.targets
        return {source: self.schema.field(name or source) for source, name in names.items()}

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write a partition; an empty one writes nothing.

        Yields:
            A row for each fragment, see `WRITTEN_COLUMNS`.

        Raises:
            InvalidInputError: (13) a value doesn't fit; the message names its row in the partition and the
                column.
        """
        rows = without_empty(batches)
        digest = RowDigest() if self.digests else None
        if digest is not None:
            rows = digest.over(rows)
        deleted = None if self.deletes is None else DeletedKeys(self.deletes, self.match)
        if deleted is not None:
            rows = deleted.split(rows)
        yield from self.write(refusing(self.fitted(rows), "{} (rows are counted within a partition)"))
        if deleted is not None and (keys := deleted.encoded()) is not None:
            yield _without_fragment(deleted=keys)
        if digest is not None and digest.value:
            yield _without_fragment(digest=digest.value)

    def fitted(self, batches: Iterable[pa.RecordBatch], conformed: bool = False) -> Iterator[pa.RecordBatch]:
        """Yield rows as the table stores them.

        Args:
            batches: the rows.
            conformed: whether they come from `conform`, with other columns.

        Raises:
            RowError: a value doesn't fit.
        """
        if self.kept is not None:
            return self._with_kept_columns(batches, self.kept)
        if self.match is None:
            return conform(batches, self.schema, conformed=conformed)
        return merged(batches, self.schema, self.match, conformed)

    def _with_kept_columns(
        self, batches: Iterable[pa.RecordBatch], kept: KeptColumns
    ) -> Iterator[pa.RecordBatch]:
        with (
            storage_failures(self.dataset.location, self.dataset.storage_options),
            self.dataset.explaining_removal(kept.version, base_cleaned_up),
        ):
            yield from with_kept_columns(batches, self.schema, self.match, kept)

    def write(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write rows as the table stores them, see `run`."""
        first = next(batches, None)
        if first is None:
            return
        stream: Iterator[pa.RecordBatch] = itertools.chain([first], batches)
        if self.condition is not None:
            stream = matching(stream, self.condition)
        reporting = nullcontext(stream) if self.progress is None else self.progress.reporting(stream)
        with storage_failures(self.dataset.location, self.dataset.storage_options), reporting as rows:
            fragments = self._write_all(rows)
        yield pa.RecordBatch.from_pylist([_written(fragment) for fragment in fragments], schema=_WRITTEN)

    def _write_all(self, rows: Iterator[pa.RecordBatch]) -> list[FragmentMetadata]:
        write = partial(self._write, self._target())
        if is_local(self.dataset.location):
            # A disk is quick enough: a second file under way would only cost memory.
            uncut = uncut_files(rows, self.max_rows_per_file)
            return write(pa.RecordBatchReader.from_batches(self.schema, uncut))
        return write_overlapping(write, rows, self.schema, self.max_rows_per_file)

    def _target(self) -> str | LanceDataset:
        if self.appends_to is None:
            self.dataset.check_links()
            return self.dataset.location
        if self.opened is not None:
            self.dataset.check_links()
            return self.opened
        with self.dataset.explaining_removal(self.appends_to, base_cleaned_up):
            return self.dataset.open(self.appends_to, self.manifest)

    def _write(self, target: str | LanceDataset, reader: pa.RecordBatchReader) -> list[FragmentMetadata]:
        from lance.fragment import write_fragments

        written: list[FragmentMetadata] = write_fragments(
            reader,
            target,
            schema=self.schema,
            mode="overwrite" if self.appends_to is None else "append",
            max_rows_per_file=self.max_rows_per_file,
            data_storage_version=self.data_storage_version,
            storage_options=snapshot(self.dataset.storage_options),
            # Only the table's readers need the files that its rows refer to.
            allow_external_blob_outside_bases=True,
            **vendor_arguments(self.dataset.location, self.dataset.storage_options),
        )
        return written


def _without_fragment(**found: object) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"rows": 0, "files": 0, "bytes": 0, **found}], schema=_WRITTEN)


def refusing(rows: Iterator[pa.RecordBatch], message: str) -> Iterator[pa.RecordBatch]:
    """Yield rows, and refuse a value that doesn't fit.

    Args:
        rows: the rows.
        message: the text of the error, with ``{}`` in the place of the row, the column and the reason.

    Raises:
        InvalidInputError: (13) a value doesn't fit.
    """
    try:
        yield from rows
    except RowError as error:
        raise spec_errors.InvalidInputError(message.format(error)) from error


def _written(fragment: FragmentMetadata) -> dict[str, object]:
    return {
        "fragment": json.dumps(fragment.to_json()),
        "rows": fragment.physical_rows,
        "files": len(fragment.files),
        "bytes": sum(file.file_size_bytes or 0 for file in fragment.files),
    }


def base_cleaned_up(version: str) -> spec_errors.ConcurrentModificationError:
    """Return the error (14) for a version that was cleaned up while a write was based on it."""
    return spec_errors.ConcurrentModificationError(
        f"{version} was cleaned up while a write was based on it, so nothing was committed. Write again, and "
        "clean up with an older_than that is longer than a write takes"
    )
