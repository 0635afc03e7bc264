"""Write a DataFrame into a table: the executors write fragments side by side, the driver commits once."""

from __future__ import annotations

import logging
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.spark.changes import KINDS, Change, already_there
from airflow_provider_lancens.spark.commit import Committer, Outcome
from airflow_provider_lancens.spark.fit import check_fit
from airflow_provider_lancens.spark.history import Commit, Counts, find_commit
from airflow_provider_lancens.spark.options import Mode, WriteOptions, WriteResult
from airflow_provider_lancens.spark.target import NamespaceSpec, Target, described
from airflow_provider_lancens.spark.tasks import WRITTEN_COLUMNS, WriteTask
from airflow_provider_lancens.spark.types import arrow_schema

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance_namespace import LanceNamespace
    from pyspark.sql import DataFrame

_log = logging.getLogger(__name__)


def write_table(
    df: DataFrame,
    namespace: NamespaceSpec | LanceNamespace,
    table: TableId | str,
    *,
    mode: Mode = "append",
    idempotency_key: str | None = None,
    options: WriteOptions | None = None,
) -> WriteResult:
    """Write a DataFrame into a declared table, as one commit.

    A driver that dies before its commit leaves files that no version refers to, never rows. Run
    again under the same key, at any time and by any number of drivers, the rows are there once.

    Args:
        df: the rows. It is computed once, and not at all where the key was already committed.
        namespace: the namespace that knows the table, or the words that make one.
        table: its identifier, such as ``db$table``.
        mode: ``append`` (makes the data set where there is none yet), ``overwrite`` (all rows and the
            schema) or ``create`` (only where there is no data set).
        idempotency_key: what this write is, such as a DAG, a task and a data interval; None makes
            every call a new write.
        options: how the data set is laid out.

    Returns:
        The version that holds the rows, and what came with it. An append of no rows to a data set
        that exists commits nothing.

    Raises:
        TableNotFoundError: (4) the table isn't declared.
        TableAlreadyExistsError: (5) `create`, and there is a data set.
        InvalidInputError: (13) an argument is wrong, or a column's type can't be stored.
        ConcurrentModificationError: (14) `overwrite`, and rows were changed while it ran.
        TableSchemaValidationError: (20) `append`, and the columns don't fit.
    """
    started = time.monotonic()
    _check(mode, idempotency_key)
    with described(namespace, table) as target:
        write = _Write(target, mode, idempotency_key or f"once-{uuid.uuid4()}")
        outcome = write.run(df, options or WriteOptions())
    return _answer(target.id, outcome, started)


def find_write(
    namespace: NamespaceSpec | LanceNamespace, table: TableId | str, idempotency_key: str
) -> WriteResult | None:
    """What an earlier `write_table` under this key committed, without any Spark.

    Args:
        namespace: the namespace that knows the table, or the words that make one.
        table: its identifier, such as ``db$table``.
        idempotency_key: the key.

    Returns:
        What that call answered, with `committed` false; None where it was not committed.

    Raises:
        TableNotFoundError: (4) the table isn't declared.
        InvalidInputError: (13) an argument is wrong.
    """
    started = time.monotonic()
    with described(namespace, table) as target:
        commit = find_commit(target.open_latest(), idempotency_key)
    if commit is None:
        return None
    return _answer(target.id, Outcome(commit, made_here=False), started)


@dataclass(frozen=True, slots=True)
class _Write:
    target: Target
    mode: str
    key: str

    def run(self, df: DataFrame, options: WriteOptions) -> Outcome:
        base = self.target.open_latest()
        found = find_commit(base, self.key)
        if found is not None:
            return Outcome(found, made_here=False)
        task = self._plan(df, base, options)
        fragments, counts = _execute(df, task)
        if base is not None and self.mode == "append" and not fragments:
            return Outcome(Commit(base.version, "", counts), made_here=False)
        change = self._change(base, task, fragments)
        committer = Committer(self.target, self.key, counts, options.enable_stable_row_ids)
        return committer.commit(change, looked_up_to=change.base or 0)

    def _plan(self, df: DataFrame, base: LanceDataset | None, options: WriteOptions) -> WriteTask:
        if self.mode == "create" and base is not None:
            raise already_there(str(self.target.id), base.version)
        appends_to = base if self.mode == "append" else None
        schema = arrow_schema(df.schema, options.vector_columns if appends_to is None else None)
        if appends_to is not None:
            check_fit(str(self.target.id), schema, appends_to.schema)
            schema = appends_to.schema
        return WriteTask(
            dataset=self.target.dataset,
            schema=schema,
            appends_to=None if appends_to is None else appends_to.version,
            max_rows_per_file=options.max_rows_per_file,
            # A commit can't change a data set's format, so an overwrite keeps it too.
            data_storage_version=options.data_storage_version if base is None else base.data_storage_version,
        )

    def _change(self, base: LanceDataset | None, task: WriteTask, fragments: list[str]) -> Change:
        from lance import FragmentMetadata

        return KINDS[self.mode](
            table=str(self.target.id),
            base=None if base is None else base.version,
            schema=task.schema,
            fragments=[FragmentMetadata.from_json(fragment) for fragment in fragments],
        )


def _execute(df: DataFrame, task: WriteTask) -> tuple[list[str], Counts]:
    """Run the task on every partition; the fragments as JSON, and what is in them."""
    written = df.mapInArrow(task.run, WRITTEN_COLUMNS).collect()
    counts = sum((Counts(row["rows"], row["files"], row["bytes"]) for row in written), Counts())
    return [row["fragment"] for row in written], counts


def _answer(table: TableId, outcome: Outcome, started: float) -> WriteResult:
    commit = outcome.commit
    result = WriteResult(
        table=str(table),
        version=commit.version,
        previous_version=commit.previous_version,
        rows=commit.counts.rows,
        files=commit.counts.files,
        bytes=commit.counts.bytes,
        seconds=round(time.monotonic() - started, 3),
        committed=outcome.made_here,
    )
    _log.info("%s", _sentence(result))
    return result


def _sentence(result: WriteResult) -> str:
    size = f"{result.rows:,} rows, {result.files} files, {result.bytes / 1e6:,.1f} MB"
    if not result.committed:
        return f"table {result.table}: nothing to commit, version {result.version} stands ({size})"
    rate = result.rows / max(result.seconds, 0.001)
    return (
        f"table {result.table}: committed version {result.version} with {size} "
        f"in {result.seconds:.1f} s ({rate:,.0f} rows/s)"
    )


def _check(mode: str, idempotency_key: str | None) -> None:
    if mode not in KINDS:
        raise InvalidInputError(f"mode: expected one of {', '.join(KINDS)}, got {mode!r}")
    if idempotency_key is not None and not idempotency_key.strip():
        raise InvalidInputError("idempotency_key: expected words that name this write, or None; got a blank")
