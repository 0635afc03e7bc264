"""Write a DataFrame to a table: the executors write fragments in parallel, the driver commits once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.spark.keys import look_up
from airflow_provider_lancens.spark.options import (
    DEFAULT_LAYOUT,
    Mode,
    OnExistingKey,
    SchemaMode,
    WhenMatched,
    WriteOptions,
    WriteRequest,
)
from airflow_provider_lancens.spark.results import WriteResult
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec, resolved_table
from airflow_provider_lancens.spark.write.pipeline import write_rows
from airflow_provider_lancens.spark.write.row_sources import FrameRows

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
    on_existing_key: OnExistingKey = "skip",
    execution_id: str | None = None,
    on: Sequence[str] | None = None,
    schema_mode: SchemaMode = "strict",
    replace_where: str | None = None,
    when_matched: WhenMatched = "update",
    sequence_by: str | None = None,
    delete_when: str | None = None,
    helper_columns: Sequence[str] | None = None,
    update_columns: Sequence[str] | None = None,
    publish: bool = True,
) -> WriteResult:
    """Write a DataFrame to a declared table, in one commit.

    A driver that is killed before its commit leaves unreferenced files, never rows. However
    often and by however many drivers a write is repeated under the same key, its rows are in the table once.

    Args:
        df: the rows. It is computed once, and not at all if the key was already committed.
        namespace: the namespace of the table, or a `NamespaceSpec` to connect from.
        table: its identifier, such as ``db$table``.
        mode: ``append`` (creates the dataset if there is none yet), ``overwrite`` (all rows), ``create``
            (only if there is no dataset) or ``upsert`` (replaces the rows that have the same key, adds the
            others).
        idempotency_key: identifies this write, such as a DAG, a task and a data interval; None makes
            every call a new write.
        options: the storage layout of the dataset.
        fingerprint: identifies the data written under the key, such as the versions of its sources. A call
            without one matches any.
        on_existing_key: what to do if the key was committed before. ``skip`` writes nothing, and refuses
            another fingerprint; ``replace_if_changed`` replaces what another fingerprint wrote; ``replace``
            replaces whatever was written; ``write_again`` writes in addition, such as an upsert of corrected
            rows. To replace is one commit: for an append it removes the rows of the earlier one, if they
            can still be identified; otherwise it overwrites the table, if others have changed no row since.
        execution_id: the same for all tries of one ``replace`` or ``write_again``, which is then made only
            once; without one, each call makes it.
        on: the key columns of an upsert. Keys must be unique in `df`, unless `sequence_by` orders them, and
            not null.
        schema_mode: what to do if the rows have other columns than the table. ``strict`` refuses them.
            ``merge``, for all modes but ``create``, adds columns and nested fields that the table lacks,
            widens types where no value is lost, and fills columns that the rows lack with null; names are
            matched without regard to case if the Spark session does so. ``overwrite`` lets an ``overwrite``
            replace the columns. Any ``overwrite`` drops all indices; the log names them.
        replace_where: a condition in SQL, such as ``day = '2026-11-01'``: an ``overwrite`` then replaces
            only the rows that match it. All new rows must match it too. Comparisons, ``IN``, ``BETWEEN``,
            ``LIKE``, ``IS NULL``, ``AND``, ``OR`` and ``NOT`` are allowed.
        when_matched: what an ``upsert`` does with a row of the table that has the key of a new one:
            ``update`` replaces it, ``keep`` leaves it and doesn't write the new one.
        sequence_by: a column by which an ``upsert`` orders the rows of a key, such as a time: of several
            new rows the last is written, and only if it is later than that of the table.
        delete_when: a condition on the new rows, such as ``op = 'D'``: an ``upsert`` deletes
            the rows of the table that have the key of such a row, rather than writing it.
        helper_columns: columns of the new rows that only `delete_when` needs, such as ``["op"]``, and that
            are never written. Without it, columns that `delete_when` names and the table doesn't have aren't
            written; the first write of a table writes all.
        update_columns: an ``upsert`` updates only these columns of rows that exist. The new rows may
            lack the others, which are then null in rows that are added.
        publish: False stages the rows: `version` is then one that no reader finds but by its number,
            until `publish_version` publishes or `discard_version` discards it.

    Returns:
        The version with the rows, and their counts. An append of no rows to an existing dataset commits
        nothing.

    Raises:
        TableNotFoundError: (4) the table isn't declared.
        TableAlreadyExistsError: (5) `create`, and the dataset exists.
        InvalidInputError: (13) an argument is invalid, or a column's type can't be stored; or the key was
            committed with another fingerprint, can't be replaced, or has expired.
        InvalidTableStateError: (19) it cannot be determined whether the key was committed.
        ConcurrentModificationError: (14) `overwrite`, and rows were changed while it ran, or `upsert`, and
            columns were; or rows that match `replace_where` were written meanwhile.
        TableSchemaValidationError: (20) the columns don't fit those of the table, or can't be merged with
            them; the message names them, and for an `overwrite` also the indices that would be dropped.
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
        when_matched=when_matched,
        sequence_by=sequence_by,
        delete_when=delete_when,
        helper_columns=helper_columns,
        update_columns=update_columns,
        publish=publish,
    )
    with resolved_table(namespace, table) as target:
        return write_rows(FrameRows(df), look_up(target, request))
