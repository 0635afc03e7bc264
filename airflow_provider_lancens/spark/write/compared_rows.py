"""Which rows of an upsert are written, if that depends on each other and on the rows of the table.

Spark compares them, as joins and windows on the executors. Whether others wrote rows of the same keys
meanwhile is checked at the commit, see `upsert`.
"""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.spark.keys import KeyLookup
from airflow_provider_lancens.spark.read.table_reader import read_opened
from airflow_provider_lancens.spark.write.row_sources import FrameRows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from airflow_provider_lancens.spark.write.row_sources import Rows

_RANK = "_lancens_rank"


def compared_rows(rows: Rows, lookup: KeyLookup) -> FrameRows:
    """Return the rows that an upsert with `sequence_by` or `when_matched` writes.

    Raises:
        InvalidInputError: (13) the rows are no DataFrame, or a column doesn't exist.
    """
    request, table = lookup.request, str(lookup.target.id)
    if not isinstance(rows, FrameRows):
        raise InvalidInputError(
            f"table {table}: when_matched, sequence_by: expected a DataFrame, since Spark compares its rows; "
            "read the files with spark.read"
        )
    frame, on, sequence = rows.frame, list(request.on or ()), request.sequence_by
    needed = [*on, *([sequence] if sequence else [])]
    _check_columns(needed, frame.columns, f"table {table}: on, sequence_by: the rows have no column")
    if sequence:
        frame = _last_of_each_key(frame, on, sequence)
    if lookup.latest is not None:
        compared = on if request.when_matched == "keep" else needed
        _check_columns(
            compared, lookup.latest.schema.names, f"table {table}: on, sequence_by: it has no column"
        )
        existing = read_opened(frame.sparkSession, lookup.target, lookup.latest, compared)
        frame = _without_kept(frame, existing, on, None if request.when_matched == "keep" else sequence)
    return FrameRows(frame)


def _check_columns(names: Sequence[str], present: Sequence[str], problem: str) -> None:
    if missing := [name for name in names if name not in present]:
        raise InvalidInputError(f"{problem} {missing[0]!r}; columns: {list(present)}")


def _last_of_each_key(frame: DataFrame, on: Sequence[str], sequence: str) -> DataFrame:
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    # Rows of the same rank are all kept: the check of the keys refuses them, rather than choose one.
    window = Window.partitionBy(*map(_column, on)).orderBy(_column(sequence).desc_nulls_last())
    return frame.withColumn(_RANK, f.rank().over(window)).where(f"{_RANK} = 1").drop(_RANK)


def _without_kept(
    frame: DataFrame, existing: DataFrame, on: Sequence[str], sequence: str | None
) -> DataFrame:
    """Leave out the rows whose key is in the table, or only those that aren't later than its row."""
    renamed = existing.toDF(*(f"_lancens_{number}" for number in range(len(existing.columns))))
    equal = (_column(name) == renamed[f"_lancens_{number}"] for number, name in enumerate(on))
    kept = reduce(and_, equal)
    if sequence is not None:
        theirs, ours = renamed[f"_lancens_{len(on)}"], _column(sequence)
        kept = kept & (ours.isNull() | (theirs >= ours))
    return frame.join(renamed, kept, "left_anti")


def _column(name: str) -> Column:
    from pyspark.sql import functions as f

    return f.col("`" + name.replace("`", "``") + "`")
