"""Upsert rows with an instruction each: delete a key, or keep columns. Runs on executors.

The rows have additional columns for it: whether a row only deletes its key, and the position in the table of
the row that it updates. So the rows are evaluated only once, and columns that an update keeps never pass
through Spark, which can't hold values of all types.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_lancens.namespace.arrow_memory import aligned_batch
from airflow_provider_lancens.namespace.row_errors import rows_from
from airflow_provider_lancens.spark.table.dataset_ref import DatasetRef
from airflow_provider_lancens.spark.table.row_casts import check_no_nulls, conform, converted

if TYPE_CHECKING:
    from lance import LanceDataset

    from airflow_provider_lancens.spark.table.column_fit import ColumnMatch


DELETED = "_lancens_deleted"
"""The column that says whether a row deletes the rows of its key rather than being written."""
POSITION = "_lancens_position"
"""The column with the position in the table of the row that is updated; null where there is none."""
OWN_COLUMNS = (DELETED, POSITION)


@dataclass(frozen=True, slots=True)
class KeptColumns:
    """Columns that an update leaves as they are in rows that exist. Picklable."""

    names: Sequence[str]
    dataset: DatasetRef
    version: int
    """The version that the positions are of."""
    rows_at_once: int
    """How many rows of the table a task holds in memory."""
    manifest: bytes | None = field(default=None, repr=False)

    def open(self) -> LanceDataset:
        """Open the table."""
        return self.dataset.open(self.version, self.manifest)


@dataclass(slots=True)
class DeletedKeys:
    """Collects the keys of the rows that are deletions, in a task."""

    keys: pa.Schema
    """The key columns, as the table has them."""
    match: ColumnMatch | None
    found: list[pa.RecordBatch] = field(default_factory=list, init=False)

    def split(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows that aren't deletions, and keep the keys of the others."""
        sources = {} if self.match is None else self.match.sources
        for batch in batches:
            deleted = batch.column(DELETED)
            if pc.any(deleted).as_py():
                rows = batch.filter(deleted)
                keys = [rows.column(sources.get(name, name)) for name in self.keys.names]
                self.found += conform([pa.RecordBatch.from_arrays(keys, names=self.keys.names)], self.keys)
                batch = batch.filter(pc.invert(deleted))
            if batch.num_rows:
                yield batch

    def encoded(self) -> bytes | None:
        """Return the keys as bytes; None if there are none."""
        if not self.found:
            return None
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.keys) as writer:
            for batch in self.found:
                writer.write_batch(batch)
        return bytes(sink.getvalue())


def decoded_keys(encoded: Sequence[bytes], keys: pa.Schema) -> pa.Table:
    """Return the keys that tasks have collected."""
    streams = [pa.ipc.open_stream(pa.py_buffer(bytes(stream))) for stream in encoded]
    return pa.Table.from_batches(map(aligned_batch, itertools.chain.from_iterable(streams)), keys)


def with_kept_columns(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, match: ColumnMatch | None, kept: KeptColumns
) -> Iterator[pa.RecordBatch]:
    """Yield the rows with the columns of the table; columns that are kept have the table's values.

    Args:
        batches: the rows, with a column `POSITION`; they may lack columns that are kept.
        schema: the columns of the table.
        match: where the columns are in the rows; None if the rows have them by the same names.
        kept: the columns that are kept.

    Raises:
        RowError: a value doesn't fit.
    """
    dataset = kept.open()
    nullable = pa.schema([f.with_nullable(True) if f.name in kept.names else f for f in schema])
    first = 0
    for batch in batches:
        for start in range(0, batch.num_rows, kept.rows_at_once):
            part = batch.slice(start, kept.rows_at_once)
            with rows_from(first + start):
                rows = converted(part, nullable, match)
                completed = _completed(rows, schema, part.column(POSITION), kept.names, dataset)
            yield completed
        first += batch.num_rows


def _completed(
    rows: pa.RecordBatch,
    schema: pa.Schema,
    positions: pa.Array,
    names: Sequence[str],
    dataset: LanceDataset,
) -> pa.RecordBatch:
    """Return rows with the values of the table where a row has a position."""
    wanted = pc.unique(positions.drop_null()).sort()
    if len(wanted) and names:  # Lance takes no rows without a column
        taken = dataset.take(wanted.to_pylist(), columns=list(names))
        # Behind the rows' own values, so that each row has one place to take its value from.
        places = pc.add(pc.index_in(positions, value_set=wanted).cast(pa.int64()), rows.num_rows)
        places = pc.coalesce(places, pa.array(range(rows.num_rows), pa.int64()))
    columns = []
    for column, target in zip(rows.columns, schema, strict=True):
        if target.name in names and len(wanted):
            theirs = taken.column(target.name).combine_chunks()
            column = pa.concat_arrays([column, _array(theirs)]).take(places)
        if not target.nullable:
            check_no_nulls(column, target.name)
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
