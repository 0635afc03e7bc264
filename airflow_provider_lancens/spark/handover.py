"""How much Spark hands to Python at a time: batches of bounded bytes, ended by their number of rows.

Spark ends a batch after so many rows, and since 4.1 also after so many bytes; for that it adds up all
columns after each row, which is a third of what the hand-over costs. Before 4.1 nothing bounds a batch of
large rows. Here a large row counts for several: fillers, rows without values, follow it, and are dropped
before anybody sees them. So the number of rows bounds the bytes, and Spark needn't add them up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Run = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What a task does with the batches of one partition."""

BATCH_BYTES = 32 * 1024 * 1024
"""The bound of a batch; its last row may lie above. Half of Spark's own, since dropping fillers copies it."""

_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_ROWS_BY_DEFAULT, _MOST_ROWS = 10_000, 16_384
_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
_UNBOUNDED = str(2**31 - 1)
"""Spark then doesn't add up any bytes."""


@contextmanager
def handed_over(frame: DataFrame, run: Run) -> Iterator[tuple[DataFrame, Run]]:
    """What to run instead of `run` over `frame`, within the block, so that batches are bounded.

    Where the session has a bound of its own, or the bytes of a row can't be told, it stays with Spark's.
    """
    session = frame.sparkSession
    own = session.conf.get(_BYTES, None)
    rows = int(session.conf.get(_ROWS, None) or _ROWS_BY_DEFAULT)
    filled = None
    if own in (None, _UNBOUNDED) and 0 < rows <= _MOST_ROWS:
        filled = with_fillers(frame, BATCH_BYTES / rows)
    if filled is None:
        yield frame, run
        return
    with _unbounded(session) if own is None else nullcontext():
        yield filled, WithoutFillers(frame.columns, run)


def with_fillers(frame: DataFrame, bytes_a_row: float) -> DataFrame | None:
    """A row that has more bytes than this is followed by so many fillers that they make up for it.

    Returns:
        The rows, and behind their columns one more that is true where a row is no filler; None where the
        bytes of a row can't be told.
    """
    from pyspark.sql import functions as sql

    from airflow_provider_lancens.spark.row_bytes import fixed_bytes, row_bytes

    types = [field.dataType for field in frame.schema.fields]
    # By position: names may differ in case alone, or need quoting.
    numbered = frame.toDF(*(f"_{number}" for number in range(len(types))))
    weight = row_bytes(zip(map(sql.col, numbered.columns), types, strict=True))
    if weight is None:
        return None
    pieces = (weight / sql.lit(bytes_a_row)).cast("int")
    exploded = numbered.select("*", sql.explode(sql.sequence(sql.lit(0), pieces)).alias("piece"))
    is_row = sql.col("piece") == 0
    values = (
        sql.col(name) if fixed_bytes(data_type) is not None else sql.when(is_row, sql.col(name)).alias(name)
        for name, data_type in zip(numbered.columns, types, strict=True)
    )
    return exploded.select(*values, is_row.alias("is_row"))


@dataclass(frozen=True, slots=True)
class WithoutFillers:
    """Runs a task on the rows alone. It pickles."""

    columns: list[str]
    """Of the DataFrame."""
    run: Run

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What the task yields."""
        return self.run(map(self._rows, batches))

    def _rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        *values, is_row = batch.columns
        rows = pa.RecordBatch.from_arrays(values, names=self.columns)
        return rows if pc.all(is_row).as_py() else rows.filter(is_row)


@contextmanager
def _unbounded(session: SparkSession) -> Iterator[None]:
    """Spark counts rows alone in this block, and where others write meanwhile, perhaps not to its end."""
    session.conf.set(_BYTES, _UNBOUNDED)
    try:
        yield
    finally:
        session.conf.unset(_BYTES)
