"""Compute a column of a table by a Python function, without rewriting the other columns."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.conditions import any_of, is_null, parse_condition
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.spark.blobs.blob_columns import inner_blob, is_blob
from airflow_provider_lancens.spark.commit.write_lease import acquire_lease
from airflow_provider_lancens.spark.compute.column_commit import add_null_column, counts_of
from airflow_provider_lancens.spark.compute.column_files import ColumnLayout
from airflow_provider_lancens.spark.compute.column_function import (
    ColumnFunction,
    ColumnFunctionError,
    Function,
)
from airflow_provider_lancens.spark.compute.column_run import ColumnRun
from airflow_provider_lancens.spark.compute.column_task import ColumnRequest, TypeTask
from airflow_provider_lancens.spark.compute.compute_options import (
    DEFAULT_BATCH_ROWS,
    ComputeResult,
    check_sizes,
)
from airflow_provider_lancens.spark.maintenance.parallel_tasks import Spark, run_in_parallel
from airflow_provider_lancens.spark.read.table_reader import parse_filter
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec, ResolvedTable, resolved_table
from airflow_provider_lancens.spark.type_names import parse_type
from airflow_provider_lancens.spark.write.column_names import check_columns
from airflow_provider_lancens.spark.write.task_progress import WriteProgress

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance_namespace import LanceNamespace
    from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)


def compute_column(
    spark: Spark,
    namespace: NamespaceSpec | LanceNamespace,
    table: TableId | str,
    column: str,
    function: Function | str,
    columns: Sequence[str],
    *,
    dtype: str | pa.DataType | None = None,
    setup: Function | str | None = None,
    only_missing: bool = True,
    where: str | None = None,
    batch_rows: int = DEFAULT_BATCH_ROWS,
    commit_every: int | None = None,
    max_tasks: int | None = None,
    execution_id: str | None = None,
) -> ComputeResult:
    """Compute a column by a Python function on Spark's executors; no other column is rewritten.

    Each task computes one fragment, and writes a file with this column. The driver commits them in steps, so
    a run that is killed repeats at most as many fragments as tasks run at once. Rows that others append
    meanwhile have no value; the next run computes them. If a compaction rewrites fragments meanwhile, they
    are computed again. Indices on the column no longer cover the changed fragments, until they are extended.

    Args:
        spark: the session, or a function that starts one, called only if there is work.
        namespace: the namespace of the table, or a `NamespaceSpec` to connect from.
        table: its identifier, such as ``db$table``.
        column: the column to compute. If it doesn't exist, it is added.
        function: ``function(batch)`` gets a `pyarrow.RecordBatch` with `columns`, and returns a
            `pyarrow.Array` with a value for each row, or a record batch with `column`. Or its path, such as
            ``module.function``. A row for which it returns null counts as missing in the next run.
        columns: the columns that the function gets, in this order.
        dtype: the type of a column that is added, such as ``float[768]`` or a PyArrow type; None calls the
            function with a batch without rows to find out.
        setup: a function, or its path, that is called once in each Python worker; `function` then gets what
            it returns as a second argument. Load models here.
        only_missing: compute the rows that have no value. False computes all rows, or those that match
            `where`.
        where: a condition, see docs/conditions.md: rows that match it are computed too, if they have a value
            or not.
        batch_rows: the maximum number of rows that the function gets at once.
        commit_every: the number of finished fragments to commit at once; by default a quarter of the tasks
            that run at once, and what is finished after a minute.
        max_tasks: the maximum number of fragments that are computed at the same time; by default what the
            session's executors can run (8 with Spark Connect, which doesn't say).
        execution_id: the same for all tries of one run that recomputes rows: it skips fragments that another
            try has committed, unless they were compacted since. None computes all of them.

    Returns:
        The version with the values, and their counts.

    Raises:
        UnsupportedOperationError: (0) the table has Lance's first file format, or data overlays.
        TableNotFoundError: (4) the table isn't declared.
        TableVersionNotFoundError: (11) nothing was written to it yet.
        TableColumnNotFoundError: (12) one of `columns` doesn't exist.
        InvalidInputError: (13) an argument is invalid, or the function returned something invalid.
        ConcurrentModificationError: (14) others changed the column or kept rewriting the table.
        ServiceUnavailableError: (17) the storage or the metastore failed.
        InvalidTableStateError: (19) a direct writer bypassed the metastore that decides the versions.
        TableSchemaValidationError: (20) the column exists with a type other than `dtype`.
        ColumnFunctionError: the function raised an exception; what was finished is committed.
    """
    started = time.monotonic()
    _check_arguments(column, columns, batch_rows, commit_every, max_tasks)
    type_asked = parse_type(dtype, "dtype") if isinstance(dtype, str) else dtype
    made = ColumnFunction.of(column, function, setup)
    session = cache(spark) if callable(spark) else lambda: spark
    with resolved_table(namespace, table) as target:
        latest = _opened(target, columns)
        prepared = _Preparation(target, session, made, tuple(columns), latest.version)
        if where is not None:  # refused before a column is added
            added = [] if column in latest.schema.names else [pa.field(column, type_asked or pa.null())]
            parse_condition(where, pa.schema([*latest.schema, *added]), f"table {target.id}: where")
        with acquire_lease(target.dataset).kept_alive(end=True) as lease:
            latest = prepared.with_column(latest, type_asked)
            begun = latest.version
            condition = _condition(target, latest, column, where, only_missing=only_missing)
            request = ColumnRequest(
                dataset=target.dataset,
                layout=ColumnLayout.of(latest, column),
                function=made,
                inputs=tuple(columns),
                condition=condition,
                reads_other_columns=where is not None,
                batch_rows=batch_rows,
                execution_id=execution_id or "",
                progress=(progress := WriteProgress(lease)),
            )
            is_missing_only = only_missing and where is None
            run = ColumnRun(target, lease, request, is_missing_only, commit_every, max_tasks, latest)
            with progress.logged():
                run.run(session)
        result = prepared.result(run, started, begun=begun)
    _log.info("%s", result)
    return result


@dataclass(frozen=True, slots=True)
class _Preparation:
    target: ResolvedTable
    session: Callable[[], SparkSession]
    function: ColumnFunction
    inputs: tuple[str, ...]
    base: int
    """The newest version when the run began."""

    def with_column(self, latest: LanceDataset, requested: pa.DataType | None) -> LanceDataset:
        """Return the table at a version that has the column, which is added if there is none."""
        column, schema = self.function.column, latest.schema
        if column not in schema.names:
            arrow = self._type(schema) if requested is None else requested
            added = pa.field(column, arrow)
            check_columns(str(self.target.id), pa.schema([*schema, added]))
            latest = add_null_column(self.target, latest, added)
        present = latest.schema.field(column).type
        if requested is not None and present != requested:
            raise spec_errors.TableSchemaValidationError(
                f"table {self.target.id}: dtype: column {column!r} is {present}, not {requested}; "
                "leave dtype out, or choose another column"
            )
        return latest

    def _type(self, schema: pa.Schema) -> pa.DataType:
        table, column = self.target.id, self.function.column
        inputs = pa.schema([_input(schema.field(name)) for name in self.inputs])
        (answer,) = run_in_parallel(self.session, [TypeTask(self.function, inputs)])
        if answer.failure is not None:
            text = (
                f"table {table}: column {column!r}: the function failed on a batch without rows, which shows "
                f"the column's type unless dtype is given: {answer.failure.message}"
            )
            raise (
                spec_errors.InvalidInputError(text)
                if answer.failure.is_invalid
                else ColumnFunctionError(text)
            )
        if answer.result is None or pa.types.is_null(answer.result):
            raise spec_errors.InvalidInputError(
                f"table {table}: column {column!r}: the function returned nulls of no type for a batch "
                "without rows; set dtype"
            )
        return answer.result

    def result(self, run: ColumnRun, started: float, *, begun: int) -> ComputeResult:
        counts, version = counts_of(run.files), run.latest.version
        commits = len(run.versions) + (begun > self.base)
        previous = self.base if commits else version
        return ComputeResult(
            table=str(self.target.id),
            column=self.function.column,
            version=version,
            previous_version=previous,
            rows=counts.rows,
            nulls=sum(file.nulls for file in run.files),
            files=counts.files,
            bytes=counts.bytes,
            commits=commits,
            seconds=round(time.monotonic() - started, 3),
            committed=bool(commits),
        )


def _input(column: pa.Field) -> pa.Field:
    """Return a column as the function gets it: of blobs, the bytes."""
    return column.with_type(pa.large_binary()) if is_blob(column.type) else column


def _check_arguments(
    column: str, columns: Sequence[str], batch_rows: int, commit_every: int | None, max_tasks: int | None
) -> None:
    if isinstance(columns, str) or not columns:
        raise spec_errors.InvalidInputError(
            f"columns: expected a list of at least one column, got {columns!r}"
        )
    if not isinstance(column, str) or not column:
        raise spec_errors.InvalidInputError(f"column: expected the name of a column, got {column!r}")
    try:
        check_sizes(batch_rows, commit_every, max_tasks)
    except ValueError as error:
        raise spec_errors.InvalidInputError(str(error)) from error


def _opened(target: ResolvedTable, columns: Sequence[str]) -> LanceDataset:
    latest = target.open_latest()
    if latest is None:
        raise spec_errors.TableVersionNotFoundError(
            f"table {target.id} is declared, but nothing has been written to it yet"
        )
    target.check_not_bypassed(latest.version)
    if latest.data_storage_version.startswith("0."):
        raise spec_errors.UnsupportedOperationError(
            f"table {target.id}: it has file format {latest.data_storage_version}; columns can be computed "
            "from format 2.0 on"
        )
    if missing := [name for name in columns if name not in latest.schema.names]:
        raise spec_errors.TableColumnNotFoundError(
            f"table {target.id}: columns: expected names among {latest.schema.names}, got {missing}"
        )
    for name in columns:
        # A file that a row refers to would be read unchecked.
        if path := inner_blob(latest.schema.field(name).type, name):
            raise spec_errors.InvalidInputError(
                f"table {target.id}: columns: {path} is a blob within a struct, an array or a map; expected "
                "columns that are blobs, or have none"
            )
    return latest


def _condition(
    target: ResolvedTable, latest: LanceDataset, column: str, where: str | None, *, only_missing: bool
) -> str | None:
    """Return which rows to compute, in Lance's SQL; None computes all."""
    conditions = [is_null(column, latest.schema)] if only_missing else []
    if where is not None:
        conditions.append(parse_filter(target, latest, where, "where"))
    return any_of(conditions).lance_sql if conditions else None
