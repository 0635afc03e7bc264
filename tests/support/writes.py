"""Writes to a table by all of their options at once, which the methods of `Table` have one by one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.spark import FileSource, TableLayout, WriteIdentity, WriteResult
from airflow_provider_lancens.spark.options import (
    DEFAULT_LAYOUT,
    Mode,
    OnExistingKey,
    SchemaMode,
    WhenMatched,
    WriteRequest,
    change_of,
)
from airflow_provider_lancens.spark.table.resolved_table import resolved_table
from airflow_provider_lancens.spark.write.files.file_plan import is_of_files
from airflow_provider_lancens.spark.write.files.file_writer import FileRows
from airflow_provider_lancens.spark.write.row_sources import FrameRows
from airflow_provider_lancens.spark.write.write_context import WriteContext
from airflow_provider_lancens.spark.write.write_rows import write_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def write_table(
    df: "DataFrame",
    namespace: Any,
    table: Any,
    *,
    mode: Mode = "append",
    key: str | None = None,
    options: TableLayout | None = None,
    fingerprint: str | None = None,
    on_existing_key: OnExistingKey = "redo",
    execution_id: str | None = None,
    on: Sequence[str] | None = None,
    schema_mode: SchemaMode = "strict",
    where: str | None = None,
    when_matched: WhenMatched = "update",
    sequence_by: str | None = None,
    delete_when: str | None = None,
    helper_columns: Sequence[str] | None = None,
    update_columns: Sequence[str] | None = None,
    stage: bool = False,
) -> WriteResult:
    """Write a DataFrame to a declared table, in one commit."""
    change = change_of(
        mode,
        on=on,
        schema_mode=schema_mode,
        where=where,
        when_matched=when_matched,
        sequence_by=sequence_by,
        delete_when=delete_when,
        helper_columns=helper_columns,
        update_columns=update_columns,
        stage=stage,
    )
    identity = WriteIdentity(key, fingerprint, on_existing_key, execution_id)
    return _write(FrameRows(df), namespace, table, WriteRequest(change, identity, options or DEFAULT_LAYOUT))


def write_files(
    spark: "SparkSession",
    source: FileSource,
    namespace: Any,
    table: Any,
    *,
    mode: Mode = "append",
    key: str | None = None,
    options: TableLayout | None = None,
    fingerprint: str | None = None,
    on_existing_key: OnExistingKey = "redo",
    execution_id: str | None = None,
    on: Sequence[str] | None = None,
    schema_mode: SchemaMode = "strict",
    where: str | None = None,
) -> WriteResult:
    """Write the rows of files to a declared table, in one commit."""
    change = change_of(mode, on=on, schema_mode=schema_mode, where=where)
    identity = WriteIdentity(key, fingerprint, on_existing_key, execution_id)
    rows = FileRows(spark, source, fingerprint if is_of_files(fingerprint) else None)
    return _write(rows, namespace, table, WriteRequest(change, identity, options or DEFAULT_LAYOUT))


def _write(rows: Any, namespace: Any, table: Any, request: WriteRequest) -> WriteResult:
    with resolved_table(namespace, table) as target:
        return write_rows(rows, WriteContext.begin(target, request))
