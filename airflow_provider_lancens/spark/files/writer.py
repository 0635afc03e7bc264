"""Write files into a table without a DataFrame: the direct way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.spark.files.rows import FileRows
from airflow_provider_lancens.spark.files.source import FileSource
from airflow_provider_lancens.spark.once import write_once
from airflow_provider_lancens.spark.options import Mode, OnChanged, WriteOptions, WriteResult
from airflow_provider_lancens.spark.target import NamespaceSpec

if TYPE_CHECKING:
    from lance_namespace import LanceNamespace
    from pyspark.sql import SparkSession


def write_files(
    spark: SparkSession,
    source: FileSource,
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
    """Write the rows of files into a declared table, as one commit, just as `write_table` does.

    Executors read the files with Arrow and write Lance; no row goes through the JVM. All files have to
    be of one schema. Rows keep the order of the files within each task, and tasks that of their shares.

    Args:
        spark: the session that hands out the work.
        source: the files, and what to take of them.
        namespace: the namespace that knows the table, or the words that make one.
        table: its identifier, such as ``db$table``.
        mode: ``append`` (makes the data set where there is none yet), ``overwrite`` (all rows and the
            schema), ``create`` (only where there is no data set) or ``upsert`` (see `write_table`).
        idempotency_key: what this write is, such as a DAG, a task and a data interval; None makes
            every call a new write.
        options: how the data set is laid out.
        fingerprint: tells what is written under the key; `fingerprint_files` makes one of the files.
        on_changed: what to do where the key was committed with another fingerprint: see `write_table`.
        on: the columns that are an upsert's key, by the table's names.

    Returns:
        The version that holds the rows, and what came with it.

    Raises:
        TableNotFoundError: (4) the table isn't declared.
        TableAlreadyExistsError: (5) `create`, and there is a data set.
        TableColumnNotFoundError: (12) the source names a column that the files don't have.
        InvalidInputError: (13) an argument is wrong, there is no file, or one can't be read; or the key was
            committed with another fingerprint, and it isn't to be replaced or can't be.
        ConcurrentModificationError: (14) `overwrite`, and rows were changed while it ran, or `upsert`, and
            columns were.
        ServiceUnavailableError: (17) the storage of the files didn't answer as expected.
        TableSchemaValidationError: (20) the files are not of one schema, or, to `append` or
            `upsert`, don't fit.
    """
    rows = FileRows(spark, source)
    return write_once(
        rows,
        namespace,
        table,
        mode=mode,
        idempotency_key=idempotency_key,
        options=options,
        fingerprint=fingerprint,
        on_changed=on_changed,
        on=on,
    )
