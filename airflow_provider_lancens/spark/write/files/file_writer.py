"""Write files to a table directly, without a DataFrame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.spark.file_source import FileSource
from airflow_provider_lancens.spark.keys import look_up
from airflow_provider_lancens.spark.options import (
    DEFAULT_LAYOUT,
    Mode,
    OnExistingKey,
    SchemaMode,
    WriteOptions,
    WriteRequest,
)
from airflow_provider_lancens.spark.results import WriteResult
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec, resolved_table
from airflow_provider_lancens.spark.write.files.file_rows import FileRows
from airflow_provider_lancens.spark.write.files.fingerprint import is_of_files
from airflow_provider_lancens.spark.write.pipeline import write_rows

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
    on_existing_key: OnExistingKey = "skip",
    execution_id: str | None = None,
    on: Sequence[str] | None = None,
    schema_mode: SchemaMode = "strict",
    replace_where: str | None = None,
) -> WriteResult:
    """Write the rows of files to a declared table, in one commit, as `write_table` does for a DataFrame.

    Executors read the files with Arrow and write Lance; no row goes through the JVM. All files must have one
    schema. Rows keep the order of the files within each task, and tasks the order of their shares.

    Args:
        spark: the session that runs the tasks.
        source: the files, with their projection.
        namespace: the namespace of the table, or a `NamespaceSpec` to connect from.
        table: its identifier, such as ``db$table``.
        mode: ``append`` (creates the dataset if there is none yet), ``overwrite`` (all rows), ``create``
            (only if there is no dataset) or ``upsert`` (see `write_table`).
        idempotency_key: identifies this write, such as a DAG, a task and a data interval; None makes
            every call a new write.
        options: the storage layout of the dataset.
        fingerprint: identifies the data written under the key; `fingerprint_files` computes that of files.
        on_existing_key: what to do if the key was committed before, see `write_table`.
        execution_id: the same for all tries of one repetition, see `write_table`.
        on: the key columns of an upsert, by the table's names.
        schema_mode: what to do if the files have other columns than the table: ``strict``, ``merge`` or
            ``overwrite``, see `write_table`; the names of files' columns must match exactly.
        replace_where: the condition on the rows that an ``overwrite`` replaces; see `write_table`.

    Returns:
        The version with the rows, and their counts.

    Raises:
        TableNotFoundError: (4) the table isn't declared.
        TableAlreadyExistsError: (5) `create`, and the dataset exists.
        TableColumnNotFoundError: (12) the source names a column that the files don't have.
        InvalidInputError: (13) an argument is invalid, there is no file, or one can't be read; or the key was
            committed with another fingerprint, can't be replaced, or has expired.
        ConcurrentModificationError: (14) a file was changed after the write was planned, or after
            `fingerprint_files`; `overwrite`, and rows were changed while it ran, or `upsert`, and columns
            were; or rows that match `replace_where` were written meanwhile.
        ServiceUnavailableError: (17) the storage of the files returned an unexpected response, or none.
        TableSchemaValidationError: (20) the files don't have one schema, or don't fit the table.
    """
    layout = options or DEFAULT_LAYOUT
    request = WriteRequest(
        mode=mode,
        idempotency_key=idempotency_key,
        fingerprint=fingerprint,
        on_existing_key=on_existing_key,
        on=on,
        options=layout,
        execution_id=execution_id,
        schema_mode=schema_mode,
        replace_where=replace_where,
    )
    with resolved_table(namespace, table) as target:
        planned = fingerprint if is_of_files(fingerprint) else None
        return write_rows(FileRows(spark, source, planned), look_up(target, request))
