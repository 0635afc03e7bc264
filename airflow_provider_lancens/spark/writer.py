"""Write a DataFrame into a table: the executors write fragments side by side, the driver commits once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.spark.once import write_once
from airflow_provider_lancens.spark.options import Mode, OnChanged, WriteOptions, WriteResult
from airflow_provider_lancens.spark.rows import FrameRows
from airflow_provider_lancens.spark.target import NamespaceSpec

if TYPE_CHECKING:
    from lance_namespace import LanceNamespace
    from pyspark.sql import DataFrame


def write_table(
    df: DataFrame,
    namespace: NamespaceSpec | LanceNamespace,
    table: TableId | str,
    *,
    mode: Mode = "append",
    idempotency_key: str | None = None,
    options: WriteOptions | None = None,
    fingerprint: str | None = None,
    on_changed: OnChanged = "fail",
    on: Sequence[str] | None = None,
) -> WriteResult:
    """Write a DataFrame into a declared table, as one commit.

    A driver that dies before its commit leaves files that no version refers to, never rows. Run
    again under the same key, at any time and by any number of drivers, the rows are there once.

    Args:
        df: the rows. It is computed once, and not at all where the key was already committed.
        namespace: the namespace that knows the table, or the words that make one.
        table: its identifier, such as ``db$table``.
        mode: ``append`` (makes the data set where there is none yet), ``overwrite`` (all rows and the
            schema), ``create`` (only where there is no data set) or ``upsert`` (rows that have the key
            of one that is there take its place, others are added).
        idempotency_key: what this write is, such as a DAG, a task and a data interval; None makes
            every call a new write.
        options: how the data set is laid out.
        fingerprint: tells what is written under the key, such as the versions it is made of. A call
            without one is equal to any.
        on_changed: what to do where the key was committed with another fingerprint: ``fail``, or
            ``replace`` what that commit brought, in one commit. For an append these are its fragments,
            as long as no compaction and no other change touched them; else the whole table, as long as
            others changed no row.
        on: the columns that are an upsert's key. No two rows of `df` may share one, and none be null.

    Returns:
        The version that holds the rows, and what came with it. An append of no rows to a data set
        that exists commits nothing.

    Raises:
        TableNotFoundError: (4) the table isn't declared.
        TableAlreadyExistsError: (5) `create`, and there is a data set.
        InvalidInputError: (13) an argument is wrong, or a column's type can't be stored; or the key was
            committed with another fingerprint, and it isn't to be replaced or can't be.
        ConcurrentModificationError: (14) `overwrite`, and rows were changed while it ran, or `upsert`, and
            columns were.
        TableSchemaValidationError: (20) `append` or `upsert`, and the columns don't fit.
    """
    return write_once(
        FrameRows(df),
        namespace,
        table,
        mode=mode,
        idempotency_key=idempotency_key,
        options=options,
        fingerprint=fingerprint,
        on_changed=on_changed,
        on=on,
    )
