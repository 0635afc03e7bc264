"""Which rows of an upsert are written, and with which values, if that depends on each other and on the table.

Spark compares them, as joins and windows on the executors. Whether others wrote rows of the same keys
meanwhile is checked at the commit, see `upsert`.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.spark.blobs.blob_columns import is_blob
from airflow_provider_lancens.spark.keys import KeyLookup
from airflow_provider_lancens.spark.read.table_reader import read_opened
from airflow_provider_lancens.spark.write.row_sources import FrameRows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import Column, DataFrame

    from airflow_provider_lancens.spark.write.row_sources import Rows

_RANK, _MATCHED = "_lancens_rank", "_lancens_matched"


def compared_rows(rows: FrameRows, lookup: KeyLookup) -> tuple[FrameRows, DataFrame | None]:
    """Choose the rows of an upsert by `sequence_by`, `when_matched`, `delete_when` and `update_columns`.

    Args:
        rows: see `frame_rows`.
        lookup: the upsert, and the table.

    Returns:
        The rows to write, and the keys to delete from the table; None if there can be none.

    Raises:
        InvalidInputError: (13) a column doesn't exist, or the condition is invalid.
    """
    request, on = lookup.request, list(lookup.request.on or ())
    _check_rows_have(rows.frame.columns, lookup)
    frame = _not_superseded(rows.frame, on, lookup)
    deleted = None
    if request.delete_when is not None:
        deleted = frame.where(request.delete_when).select(*map(_column, on))
        kept = frame.where(f"NOT coalesce(({request.delete_when}), false)")
        frame = kept.drop(*_only_in_condition(kept, lookup))
    if request.update_columns and lookup.latest is not None:
        frame = _with_values_of_the_table(frame, on, lookup)
    return FrameRows(frame), deleted


def frame_rows(rows: Rows, lookup: KeyLookup) -> FrameRows:
    """Return the rows of an upsert, if Spark can compare them.

    Raises:
        InvalidInputError: (13) they are no DataFrame, or `delete_when` is invalid for them.
    """
    table, condition = lookup.target.id, lookup.request.delete_when
    if not isinstance(rows, FrameRows):
        raise spec_errors.InvalidInputError(
            f"table {table}: when_matched, sequence_by, delete_when, update_columns: expected a DataFrame, "
            "since Spark compares its rows; read the files with spark.read"
        )
    if condition is not None and not _is_valid(rows.frame, condition):
        raise spec_errors.InvalidInputError(
            f"table {table}: delete_when={condition!r} isn't a condition on the rows; their columns: "
            f"{rows.frame.columns}"
        )
    return rows


def stored_columns(rows: FrameRows, lookup: KeyLookup) -> FrameRows:
    """Return the rows without the columns that only tell which of them are deletions."""
    ignored = _only_in_condition(rows.frame, lookup)
    return FrameRows(rows.frame.drop(*ignored)) if ignored else rows


def _only_in_condition(frame: DataFrame, lookup: KeyLookup) -> list[str]:
    """Return the columns of rows that `delete_when` names, and that the table doesn't have."""
    condition = lookup.request.delete_when
    if condition is None:
        return []
    stored = [*(lookup.request.on or ()), *(lookup.latest.schema.names if lookup.latest is not None else ())]
    others = [name for name in frame.columns if name not in stored]
    return [name for name in others if not _is_valid(frame, condition, without=name)]


def _is_valid(frame: DataFrame, condition: str, without: str | None = None) -> bool:
    from pyspark.errors import AnalysisException, ParseException
    from pyspark.sql.types import StructType

    # No rows, rather than these without a column: Spark would still find the column below them.
    schema = StructType([field for field in frame.schema.fields if field.name != without])
    with _without_query_log():
        try:
            return bool(frame.sparkSession.createDataFrame([], schema).where(condition).schema)
        except (AnalysisException, ParseException):
            return False


@contextmanager
def _without_query_log() -> Iterator[None]:
    """Keep PySpark from logging an invalid query as an error, where that it is invalid is the answer."""
    try:
        from pyspark.logger import PySparkLogger
    except ImportError:  # before 4.0, which logs none
        yield
        return
    logger = PySparkLogger.getLogger("SQLQueryContextLogger")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def _check_rows_have(columns: Sequence[str], lookup: KeyLookup) -> None:
    request, table = lookup.request, f"table {lookup.target.id}"
    sequence = [request.sequence_by] if request.sequence_by else []
    _check_columns(
        [*(request.on or ()), *sequence], columns, f"{table}: on, sequence_by: the rows have no column"
    )
    _check_columns(request.update_columns or (), columns, f"{table}: update_columns: the rows have no column")


def _check_columns(names: Sequence[str], present: Sequence[str], problem: str) -> None:
    if missing := [name for name in names if name not in present]:
        raise spec_errors.InvalidInputError(f"{problem} {missing[0]!r}; columns: {list(present)}")


def _not_superseded(frame: DataFrame, on: Sequence[str], lookup: KeyLookup) -> DataFrame:
    """Leave out the rows that another row of the same key, new or of the table, takes precedence of."""
    request, sequence = lookup.request, lookup.request.sequence_by
    if sequence:
        frame = _last_of_each_key(frame, on, sequence)
    keeps = request.when_matched == "keep"
    if lookup.latest is None or not (keeps or sequence):
        return frame
    compared = [*on, *([sequence] if sequence and not keeps else [])]
    present = lookup.latest.schema.names
    _check_columns(compared, present, f"table {lookup.target.id}: on, sequence_by: it has no column")
    existing = read_opened(frame.sparkSession, lookup.target, lookup.latest, compared)
    return _without_kept(frame, existing, on, None if keeps else sequence)


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
    renamed = _renamed(existing)
    kept = _same_keys(renamed, on)
    if sequence is not None:
        theirs, ours = renamed[_position(len(on))], _column(sequence)
        kept = kept & (ours.isNull() | (theirs >= ours))
    return frame.join(renamed, kept, "left_anti")


def _with_values_of_the_table(frame: DataFrame, on: Sequence[str], lookup: KeyLookup) -> DataFrame:
    """Take all but the updated columns from the rows of the table that have the same keys."""
    from pyspark.sql import functions as f

    latest, updated = lookup.latest, lookup.request.update_columns or ()
    assert latest is not None  # noqa: S101 the caller has checked
    names = latest.schema.names
    _check_columns([*on, *updated], names, f"table {lookup.target.id}: update_columns: it has no column")
    others = [name for name in names if name not in updated and name not in on]
    _check_copyable(lookup, others)
    existing = read_opened(frame.sparkSession, lookup.target, latest, [*on, *others])
    renamed = _renamed(existing).withColumn(_MATCHED, f.lit(True))

    def value(name: str) -> Column:
        if name not in others:
            return _column(name)
        theirs = renamed[_position(len(on) + others.index(name))]
        ours = _column(name) if name in frame.columns else f.lit(None)
        return f.when(renamed[_MATCHED], theirs).otherwise(ours).alias(name)

    joined = frame.join(renamed, _same_keys(renamed, on), "left")
    missing = [name for name in names if name not in frame.columns]
    return joined.select(*map(value, [*frame.columns, *missing]))


def _check_copyable(lookup: KeyLookup, columns: Sequence[str]) -> None:
    schema = lookup.latest.schema if lookup.latest is not None else ()
    blobs = [field.name for field in schema if field.name in columns and is_blob(field.type)]
    if blobs:
        raise spec_errors.InvalidInputError(
            f"table {lookup.target.id}: update_columns: the other columns of a row are copied, which "
            f"blob column {blobs[0]!r} cannot be; upsert whole rows, or compute the columns instead"
        )


def _renamed(existing: DataFrame) -> DataFrame:
    """Return rows of the table with other names than the new rows have."""
    return existing.toDF(*map(_position, range(len(existing.columns))))


def _same_keys(renamed: DataFrame, on: Sequence[str]) -> Column:
    equal = (_column(name) == renamed[_position(number)] for number, name in enumerate(on))
    return reduce(and_, equal)


def _position(number: int) -> str:
    return f"_lancens_{number}"


def _column(name: str) -> Column:
    from pyspark.sql import functions as f

    return f.col("`" + name.replace("`", "``") + "`")
