"""Selects the rows of an upsert to write, and their values, if they depend on each other and on the table.

Spark compares them, as joins and windows on the executors, which read the keys of the table's rows. Whether
others wrote rows of the same keys meanwhile is checked at the commit, see `commit.upsert`.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import ArrayType, DataType, LongType, MapType, StructField, StructType

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.conditions import Condition, parse_condition
from airflow_provider_lancens.spark.blobs import inner_blob, is_any_blob
from airflow_provider_lancens.spark.read import ReadTask, frame_of, plan_opened
from airflow_provider_lancens.spark.storage_failures import storage_failures
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable
from airflow_provider_lancens.spark.table.row_casts import conform
from airflow_provider_lancens.spark.types import arrow_type
from airflow_provider_lancens.spark.write.row_sources import FrameRows
from airflow_provider_lancens.spark.write.upsert_task import DELETED, POSITION
from airflow_provider_lancens.spark.write.write_context import UpsertContext
from airflow_provider_lancens.spark.write.write_task import base_cleaned_up

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lance import LanceDataset
    from pyspark.sql import Column, DataFrame, SparkSession

    from airflow_provider_lancens.conditions import Condition
    from airflow_provider_lancens.spark.write.row_sources import Rows

_log = logging.getLogger(__name__)


_OWN = "_lancens_"
"""Begins the names of all columns by which rows are compared."""
_RANK = f"{_OWN}rank"
_BINARY = "UTF8_BINARY"


def compared_rows(rows: FrameRows, context: UpsertContext) -> FrameRows:
    """Choose the rows of an upsert by `sequence_by`, `when_matched`, `delete_when` and `update_columns`.

    The rows are evaluated once, by the job that writes them: whether one is a deletion, and which row of the
    table it updates, are columns of their own, see `upsert_task`.

    Args:
        rows: see `frame_rows`.
        context: the upsert, and the table.

    Returns:
        The rows to write and to delete.

    Raises:
        InvalidInputError: (13) a column doesn't exist, has no order, or has a name of the package's own; or
            the condition is invalid.
    """
    upsert, on = context.change, list(context.change.on)
    _check_rows_have(rows.frame.columns, context)
    _check_no_own_names(rows.frame.columns, context)
    if upsert.sequence_by:
        _check_order(rows.frame.schema[upsert.sequence_by], context)
    frame = rows.frame
    if upsert.sequence_by:
        frame = _last_of_each_key(frame, on, upsert.sequence_by)
    if upsert.delete_when is not None:
        frame = _with_deletions(frame, _condition(frame, context), helpers_of(frame, context))
    kept = None
    if context.latest is not None:
        if upsert.update_columns:
            kept = _kept_columns(context, context.latest, upsert.update_columns)
        if upsert.compares_rows:
            frame = _compared(frame, context, context.latest)
    return FrameRows(frame, upsert.delete_when is not None, kept)


def frame_rows(rows: Rows, context: UpsertContext) -> FrameRows:
    """Return the rows of an upsert, if Spark can compare them.

    Raises:
        InvalidInputError: (13) they are no DataFrame, or `delete_when` is invalid for them.
    """
    table = context.table
    if not isinstance(rows, FrameRows):
        raise spec_errors.InvalidInputError(
            f"table {table}: when_matched, sequence_by, delete_when, update_columns: expected a DataFrame, "
            "since Spark compares its rows; read the files with spark.read"
        )
    if context.change.delete_when is not None:
        _condition(rows.frame, context)
    return rows


def check_collations(rows: FrameRows, context: UpsertContext) -> None:
    """Refuse keys that Spark compares by a collation, and Lance by their bytes.

    Raises:
        InvalidInputError: (13) a key column, or the column `sequence_by`, has a collation.
    """
    upsert = context.change
    compared = {*upsert.on, *([upsert.sequence_by] if upsert.sequence_by else [])}
    for column in rows.frame.schema.fields:
        collation = getattr(column.dataType, "collation", _BINARY)
        if column.name in compared and collation != _BINARY:
            raise spec_errors.InvalidInputError(
                f"table {context.table}: on, sequence_by: column {column.name!r} has the collation "
                f"{collation}, but a table compares text by its bytes; cast it: CAST({column.name} AS STRING "
                f"COLLATE {_BINARY})"
            )


def by_names_of_the_table(rows: FrameRows, context: UpsertContext) -> tuple[FrameRows, UpsertContext]:
    """Return rows and an upsert with the table's spelling of names, where the session ignores case.

    Args:
        rows: the rows; their columns are renamed only where columns are merged, which matches them so.
        context: the upsert, and the table.
    """
    if rows.match_case:
        return rows, context
    names = rows.frame.columns
    stored = context.latest.schema.names if context.latest is not None else []
    if context.change.schema_mode == "merge":
        names = [_spelled(name, stored, among=names) for name in names]
    frame = rows.frame if names == rows.frame.columns else rows.frame.toDF(*names)

    def spelled(given: Sequence[str] | None) -> list[str] | None:
        return None if given is None else [_spelled(name, [*stored, *names]) for name in given]

    upsert = context.change
    sequence = spelled([upsert.sequence_by] if upsert.sequence_by else [])
    resolved = replace(
        upsert,
        on=[_spelled(name, [*stored, *names]) for name in upsert.on],
        sequence_by=sequence[0] if sequence else None,
        update_columns=spelled(upsert.update_columns),
        helper_columns=spelled(upsert.helper_columns),
    )
    return FrameRows(frame), context.with_change(resolved)


def _spelled(name: str, names: Sequence[str], among: Sequence[str] = ()) -> str:
    """Return the one name that differs from a given one in case alone; itself if none or several do."""
    alike = {candidate for candidate in names if candidate.lower() == name.lower()}
    others = [candidate for candidate in among if candidate.lower() == name.lower()]
    return name if name in names or len(alike) != 1 or len(others) > 1 else alike.pop()


def stored_columns(rows: FrameRows, context: UpsertContext) -> FrameRows:
    """Return the rows without the columns that only `delete_when` needs."""
    ignored = helpers_of(rows.frame, context)
    return FrameRows(rows.frame.drop(*map(_column, ignored))) if ignored else rows


def helpers_of(frame: DataFrame, context: UpsertContext) -> list[str]:
    """Return the columns of rows that only `delete_when` needs, and that aren't written.

    By default, these are the columns that the condition names and the table lacks. Before the first write of
    a table, there are none: all columns are data.

    Raises:
        InvalidInputError: (13) the rows lack a given column.
    """
    given = context.change.helper_columns
    if context.change.delete_when is None:
        return []
    if given is not None:
        problem = f"table {context.table}: helper_columns: the rows have no column"
        _check_columns(given, frame.columns, problem)
        return list(given)
    if context.latest is None:
        return []
    stored = [*context.change.on, *context.latest.schema.names]
    named = _condition(frame, context).columns
    helpers = [name for name in frame.columns if name not in stored and name in named]
    if helpers:
        _log.info(
            "table %s: %s aren't written, since delete_when names them and the table doesn't have them; "
            "helper_columns=[] writes them",
            context.table,
            ", ".join(helpers),
        )
    return helpers


def _condition(frame: DataFrame, context: UpsertContext) -> Condition:
    """Return `delete_when` for these rows; columns of types that Lance lacks can only be null or not.

    Raises:
        InvalidInputError: (13) it is invalid for them.
    """
    fields = [pa.field(field.name, _arrow_type(field)) for field in frame.schema.fields]
    text = str(context.change.delete_when)
    return parse_condition(text, pa.schema(fields), f"table {context.table}: delete_when")


def _arrow_type(field: StructField) -> pa.DataType:
    try:
        return arrow_type(field.dataType, field.name)
    except spec_errors.InvalidInputError:
        return pa.null()


def _check_rows_have(columns: Sequence[str], context: UpsertContext) -> None:
    upsert, table = context.change, f"table {context.table}"
    sequence = [upsert.sequence_by] if upsert.sequence_by else []
    _check_columns([*upsert.on, *sequence], columns, f"{table}: on, sequence_by: the rows have no column")
    _check_columns(upsert.update_columns or (), columns, f"{table}: update_columns: the rows have no column")


def _check_no_own_names(columns: Sequence[str], context: UpsertContext) -> None:
    stored = context.latest.schema.names if context.latest is not None else []
    if taken := [name for name in [*columns, *stored] if name.lower().startswith(_OWN)]:
        raise spec_errors.InvalidInputError(
            f"table {context.table}: column {taken[0]!r}: when_matched, sequence_by, delete_when and "
            f"update_columns use names that begin with {_OWN} themselves; rename the column"
        )


def _check_order(column: StructField, context: UpsertContext) -> None:
    if _has_no_order(column.dataType):
        raise spec_errors.InvalidInputError(
            f"table {context.table}: sequence_by: column {column.name!r} is "
            f"{column.dataType.simpleString()}, whose values have no order; expected a column that says "
            "which row is later, such as a time"
        )


def _has_no_order(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return any(_has_no_order(field.dataType) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return _has_no_order(kind.elementType)
    return isinstance(kind, MapType) or kind.typeName() == "variant"  # a type since Spark 4


def _check_columns(names: Sequence[str], present: Sequence[str], problem: str) -> None:
    if missing := [name for name in names if name not in present]:
        raise spec_errors.InvalidInputError(f"{problem} {missing[0]!r}; columns: {list(present)}")


def _last_of_each_key(frame: DataFrame, on: Sequence[str], sequence: str) -> DataFrame:
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    # Rows of the same rank are all kept: the check of the keys refuses them, rather than choose one.
    window = Window.partitionBy(*map(_column, on)).orderBy(_column(sequence).desc_nulls_last())
    return frame.withColumn(_RANK, f.rank().over(window)).where(f"{_RANK} = 1").drop(_RANK)


def _with_deletions(frame: DataFrame, condition: Condition, helpers: Sequence[str]) -> DataFrame:
    from pyspark.sql import functions as f

    flagged = frame.withColumn(DELETED, f.expr(f"coalesce(({condition.spark_sql}), false)"))
    return flagged.drop(*map(_column, helpers))


def _compared(frame: DataFrame, context: UpsertContext, latest: LanceDataset) -> DataFrame:
    """Leave out rows over which the table's rows take precedence, and add positions if they are needed."""
    upsert, on, present = context.change, list(context.change.on), latest.schema.names
    keeps = upsert.when_matched == "keep"
    sequence = None if keeps else upsert.sequence_by
    others = [sequence] if sequence and sequence not in on else []
    problem = (
        "update_columns: it has no column" if upsert.update_columns else "on, sequence_by: it has no column"
    )
    _check_columns([*on, *others], present, f"table {context.table}: {problem}")
    existing = read_keys_of(frame.sparkSession, context.target, latest, on, others)
    renamed = existing.toDF(*map(_position, range(len(existing.columns))))
    same, position = _same_keys(renamed, on), renamed[_position(len(existing.columns) - 1)]
    if sequence:
        theirs = renamed[_position([*on, *others].index(sequence))]
        first = _column(sequence).isNull() | (theirs >= _column(sequence))
    if not upsert.update_columns:
        return frame.join(renamed, same & first if sequence else same, "left_anti")
    from pyspark.sql import functions as f

    joined = frame.join(renamed, same, "left")
    if sequence:
        joined = joined.where(position.isNull() | ~f.coalesce(first, f.lit(False)))
    chosen = joined.select(*map(_column, frame.columns), position.alias(POSITION))
    # So that a task reads neighboring rows of the table together.
    return chosen.sortWithinPartitions(POSITION)


def _kept_columns(context: UpsertContext, latest: LanceDataset, updated: Sequence[str]) -> pa.Schema:
    """Return the columns whose values existing rows keep."""
    names, on = latest.schema.names, context.change.on
    _check_columns([*on, *updated], names, f"table {context.table}: update_columns: it has no column")
    kept = pa.schema([field for field in latest.schema if field.name not in updated and field.name not in on])
    if blobs := [field.name for field in kept if is_any_blob(field) or inner_blob(field.type, field.name)]:
        raise spec_errors.InvalidInputError(
            f"table {context.table}: update_columns: the other columns of a row are copied, which "
            f"blob column {blobs[0]!r} cannot be; upsert whole rows, or compute the columns instead"
        )
    return kept


def _same_keys(renamed: DataFrame, on: Sequence[str]) -> Column:
    equal = (_column(name) == renamed[_position(number)] for number, name in enumerate(on))
    return reduce(and_, equal)


def _position(number: int) -> str:
    return f"{_OWN}{number}"


def _column(name: str) -> Column:
    from pyspark.sql import functions as f

    return f.col("`" + name.replace("`", "``") + "`")


def read_keys_of(
    spark: SparkSession,
    target: ResolvedTable,
    dataset: LanceDataset,
    keys: Sequence[str],
    others: Sequence[str] = (),
) -> DataFrame:
    """Return key columns of an opened version, others, and the position of each row in the table.

    Rows whose keys no row of Spark can have are left out: their times have nanoseconds.

    Raises:
        TableColumnNotFoundError: (12) it has no such column.
        InvalidInputError: (13) Spark has no type for a column.
    """
    schema, task = plan_opened(target, dataset, [*keys, *others], None)
    schema = StructType([*schema.fields, StructField(POSITION, LongType())])
    sizes = [fragment.metadata.num_rows for fragment in dataset.get_fragments()]
    starts = itertools.accumulate(sizes, initial=0)
    firsts = {
        fragment.fragment_id: start for fragment, start in zip(dataset.get_fragments(), starts, strict=False)
    }
    return frame_of(
        spark,
        schema,
        KeyReadTask(
            dataset=task.dataset,
            version=task.version,
            schema=task.schema.append(pa.field(POSITION, pa.int64())),
            filter=None,
            groups=task.groups,
            firsts=firsts,
            keys=keys,
        ),
    )


@dataclass(frozen=True, slots=True)
class KeyReadTask(ReadTask):
    """Read the keys of rows, each with its position in the table."""

    firsts: Mapping[int, int] = field(default_factory=dict)
    """The position of the first row of each fragment."""
    keys: Sequence[str] = ()

    def read(self, number: int) -> Iterator[pa.RecordBatch]:
        """Read one group, by its number; without rows whose keys Spark can't have."""
        columns = pa.schema([field for field in self.schema if field.name != POSITION])
        with (
            storage_failures(self.dataset.location, self.dataset.storage_options),
            self.dataset.explaining_removal(self.version, base_cleaned_up),
        ):
            dataset = self.dataset.open(self.version)
            for fragment in dataset.get_fragments():
                if fragment.fragment_id not in self.groups[number]:
                    continue
                position = self.firsts[fragment.fragment_id]
                for batch in dataset.scanner(columns=columns.names, fragments=[fragment]).to_batches():
                    positions = pa.array(range(position, position + batch.num_rows), pa.int64())
                    position += batch.num_rows
                    comparable = _comparable(batch, self.keys)
                    for rows in conform([batch.filter(comparable)], columns, cut_times=True):
                        chosen = positions.filter(comparable)
                        yield pa.RecordBatch.from_arrays([*rows.columns, chosen], schema=self.schema)


def _comparable(batch: pa.RecordBatch, keys: Sequence[str]) -> pa.Array:
    """Return which rows have keys that Spark can have: its times end with microseconds."""
    comparable = pa.array([True] * batch.num_rows)
    for name in keys:
        column = batch.column(name)
        if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
            whole = pc.equal(pc.floor_temporal(column, unit="microsecond"), column)
            comparable = pc.and_(comparable, pc.fill_null(whole, False))
    return comparable
