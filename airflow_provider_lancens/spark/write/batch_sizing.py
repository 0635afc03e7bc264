"""Bound the bytes of the batches that Spark passes to Python by their number of rows.

Spark ends a batch after a number of rows, and since 4.1 also after a number of bytes; for that it adds up all
columns after each row, which is a third of the cost of the transfer. Before 4.1 nothing bounds a batch of
large rows. Here a large row counts as several: it is followed by fillers, rows without values, which are
dropped before the task runs. So the number of rows bounds the bytes, and Spark needn't add them up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql import types as spark

Run = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""A task: it takes the batches of one partition, and yields its results."""

BATCH_BYTES = 32 * 1024 * 1024
"""Bound of a batch; its last row may exceed it. Half of Spark's own, since dropping fillers copies it."""

_USUAL_BYTES = 12 * 1024 * 1024
"""Bytes of a batch of rows whose size the table's columns tell: larger ones leave the processor's cache.

Vectors of 768 floats take 5 to 9 % less time in batches of 3 to 12 MB than in batches of 31 MB.
"""

_MAX_LENGTHS = 256
"""Maximum number of values of variable size to measure in a row: Spark compiles a longer sum slowly."""

_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_DEFAULT_ROWS, _MAX_ROWS = 10_000, 16_384
_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
_UNBOUNDED = str(2**31 - 1)
"""Spark then doesn't add up any bytes."""


@contextmanager
def in_bounded_batches(
    frame: DataFrame, run: Run, columns: Mapping[str, pa.Field]
) -> Iterator[tuple[DataFrame, Run]]:
    """Return a DataFrame and a task to run in the block instead of `frame` and `run`, with bounded batches.

    Bounds that the session sets are kept. Spark's own bound of bytes is kept too if the size of a row can't
    be computed or depends on very many values, and if a batch of rows of fixed size exceeds `BATCH_BYTES`:
    there fillers take as much space as rows do.

    Args:
        frame: the rows.
        run: the task to run on them.
        columns: the columns that they are written to, by the rows' names.
    """
    conf = frame.sparkSession.conf
    own_bytes, own_rows = conf.get(_BYTES, None), conf.get(_ROWS, None)
    rows = int(own_rows) if own_rows else _usual_rows(columns)
    filled = (
        _with_fillers(frame, run, rows) if own_bytes in (None, _UNBOUNDED) and 0 < rows <= _MAX_ROWS else None
    )
    # A concurrent write may set or unset these earlier, so that its batches, or these, are larger or smaller.
    settings = {}
    if filled is not None and own_bytes is None:
        settings[_BYTES] = _UNBOUNDED
    if own_rows is None and rows < _DEFAULT_ROWS:
        settings[_ROWS] = str(rows)
    for name, value in settings.items():
        conf.set(name, value)
    try:
        yield filled or (frame, run)
    finally:
        # Without a session there is nothing to unset, and the error that ended it must not be replaced.
        with suppress(Exception):
            for name in settings:
                conf.unset(name)


def _usual_rows(columns: Mapping[str, pa.Field]) -> int:
    """Return the rows of a batch of `_USUAL_BYTES`, at most Spark's default, by the columns of fixed size."""
    width = sum(_fixed_bytes(column.type) for column in columns.values())
    return max(1, min(_DEFAULT_ROWS, _USUAL_BYTES // max(width, 1)))


def _fixed_bytes(arrow: pa.DataType) -> int:
    """Return the bytes that each value of a type takes, without the bytes that vary."""
    if pa.types.is_fixed_size_list(arrow):
        return int(arrow.list_size) * _fixed_bytes(arrow.value_type)
    if pa.types.is_struct(arrow):
        return sum(_fixed_bytes(arrow.field(n).type) for n in range(arrow.num_fields))
    try:
        return int(arrow.bit_width) // 8
    except ValueError:
        return 0


def bytes_of(batch: pa.RecordBatch) -> int:
    """Return the size of a batch's values; with views, of its buffers before pyarrow 24."""
    try:
        return int(batch.nbytes)
    except pa.ArrowTypeError:
        return int(batch.get_total_buffer_size())


def _with_fillers(frame: DataFrame, run: Run, rows: int) -> tuple[DataFrame, Run] | None:
    """Add fillers after each large row, one per full share of `BATCH_BYTES` of its size.

    Args:
        frame: the rows.
        run: the task to run on them.
        rows: the number of rows after which Spark ends a batch.

    Returns:
        The rows, with a last column added that is false for fillers, and a task that drops them; None if the
        size of the rows can't be computed.
    """
    # By position: names may differ only in case, or need quoting.
    sizes = {f"_{n}": value_bytes(f"_{n}", field.dataType) for n, field in enumerate(frame.schema.fields)}
    terms = [term for size in sizes.values() for term in size or ()]
    lengths = [term for term in terms if isinstance(term, str)]
    fixed = sum(term for term in terms if isinstance(term, int))
    if None in sizes.values() or len(lengths) > _MAX_LENGTHS or fixed * rows > BATCH_BYTES:
        return None
    if not lengths:
        return frame, run
    total = [f"{fixed}L", *lengths]
    while len(total) > 1:
        # Spark parses, analyzes and compiles a sum recursively: a chain of hundreds overflows its stack.
        total = [f"({' + '.join(total[start : start + 2])})" for start in range(0, len(total), 2)]
    pieces = f"explode(sequence(0, cast({total[0]} / {BATCH_BYTES / rows!r}D as int))) as piece"
    values = (
        f"if(piece = 0, {name}, null) as {name}" if set(size or ()) & set(lengths) else name
        for name, size in sizes.items()
    )
    filled = frame.toDF(*sizes).selectExpr("*", pieces).selectExpr(*values, "piece = 0 as is_row")
    return filled, WithoutFillers(frame.columns, run)


@dataclass(frozen=True, slots=True)
class WithoutFillers:
    """Runs a task on the rows without the fillers. Picklable."""

    columns: list[str]
    """Columns of the DataFrame."""
    run: Run

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run the task, and yield its results."""
        return self.run(map(self._rows, batches))

    def _rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        *values, is_row = batch.columns
        rows = pa.RecordBatch.from_arrays(values, names=self.columns)
        return rows if pc.all(is_row).as_py() else rows.filter(is_row)


def value_bytes(value: str, data_type: spark.DataType) -> list[int | str] | None:
    """Return the terms of the bytes that a value takes; None if they can't be computed from lengths alone.

    Args:
        value: its SQL expression.
        data_type: its type.

    Returns:
        Numbers for the bytes that it always takes, null or not, and SQL expressions for the bytes that
        vary, each a bigint that is never null.

    Raises:
        InvalidInputError: (13) Lance can't store the type.
    """
    # Rows in memory are written without PySpark.
    from pyspark.sql import types as spark

    from airflow_provider_lancens.spark.types import arrow_type

    arrow = arrow_type(data_type, "")
    if pa.types.is_null(arrow):
        return [0]
    if pa.types.is_primitive(arrow) or pa.types.is_decimal(arrow):
        return [_fixed_bytes(arrow) or 1]
    # The length of null is null or negative, depending on the session; `greatest` ignores nulls.
    match data_type:
        case spark.StringType() | spark.BinaryType():
            return [f"greatest(octet_length({value}), 0L)"]
        case spark.ArrayType():
            match value_bytes("", data_type.elementType):
                case [int(width)]:
                    return [f"greatest(size({value}) * {width}L, 0L)"]
        case spark.StructType() if len({name.lower() for name in data_type.names}) == len(data_type.names):
            sizes = [value_bytes(f"{value}.{quoted(f.name)}", f.dataType) for f in data_type.fields]
            return None if None in sizes else [term for size in sizes for term in size or ()]
    return None  # measuring each element of a map would cost more than it saves


def quoted(name: str) -> str:
    """Quote a name for Spark SQL."""
    return f"`{name.replace('`', '``')}`"
