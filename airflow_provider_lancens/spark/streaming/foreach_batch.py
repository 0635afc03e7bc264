"""Write each epoch of a streaming query once, by ``DataStreamWriter.foreachBatch``."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.spark.observed import Ended, notify
from airflow_provider_lancens.spark.options import (
    DEFAULT_LAYOUT,
    SchemaMode,
    TableLayout,
    WhenMatched,
    WriteRequest,
    change_of,
    is_whole_number,
)
from airflow_provider_lancens.spark.results import WriteResult
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec, resolved_table
from airflow_provider_lancens.spark.write.row_sources import FrameRows
from airflow_provider_lancens.spark.write.write_context import WriteContext
from airflow_provider_lancens.spark.write.write_rows import write_rows

if TYPE_CHECKING:
    from lance_namespace import LanceNamespace
    from pyspark.sql import DataFrame, SparkSession

    from airflow_provider_lancens.spark.keys import KeyedCommit

_log = logging.getLogger(__name__)


QUERY_ID = "sql.streaming.queryId"
"""Spark's local property with the id of the query that a job or a task belongs to."""


def epoch_key(query_id: str, epoch: int) -> str:
    """Return the idempotency key of an epoch.

    Args:
        query_id: the id of the query, or what was given in its place.
        epoch: the number of the micro-batch.

    Raises:
        InvalidInputError: (13) the id is blank or no text, or the number isn't one.
    """
    check_query_id(query_id)
    if not is_whole_number(epoch, at_least=0):
        raise spec_errors.InvalidInputError(
            f"epoch={epoch!r}: expected the number of a micro-batch, as Spark passes it"
        )
    return f"stream/{query_id}/{epoch}"


def check_query_id(query_id: str) -> None:
    """Check the id of a query.

    Raises:
        InvalidInputError: (13) it is blank or no text.
    """
    if not isinstance(query_id, str) or not query_id.strip():
        raise spec_errors.InvalidInputError(
            f"query_id={query_id!r}: expected text that no other query of the table has"
        )


def running_query(spark: SparkSession) -> str:
    """Return the id of the query that a function of ``foreachBatch`` is called for.

    Raises:
        InvalidInputError: (13) Spark doesn't tell it, as on Spark Connect, or there is no query.
    """
    context = getattr(spark, "_sc", None)
    found = None if context is None else context.getLocalProperty(QUERY_ID)
    if not found:
        raise spec_errors.InvalidInputError(
            "query_id: Spark doesn't provide the query's id; pass an id that no other query of "
            "the table has, such as query_id='orders'"
        )
    return str(found)


def check_same_rows(table: object, key: str, earlier: KeyedCommit, digest: str) -> None:
    """Check that a repeated epoch has the rows with which it was committed.

    If a checkpoint was restored from a backup, Spark may give other rows the number of an epoch that the
    table already has. They would be lost if they counted as the rows of that epoch.

    Args:
        table: the table's identifier.
        key: the key of the epoch.
        earlier: its commit.
        digest: the digest of its rows now, see `row_hashes`.

    Raises:
        InvalidInputError: (13) it has other rows.
    """
    if earlier.fingerprint != digest:
        raise spec_errors.InvalidInputError(
            f"table {table}: version {earlier.version} was committed as epoch {key!r} with "
            f"{earlier.counts.rows} rows, and the epoch has other ones now; nothing was written. If the "
            "query was changed, run it as it was until it has passed this epoch. Otherwise, the checkpoint "
            "is older than the table, and its next epochs have other rows too: start a query with a new "
            "checkpoint from the table's current position"
        )


_AS_THEY_ARE = pa.schema([])
"""The columns of no table, to which no row is converted."""

EpochMode = Literal["append", "overwrite", "upsert"]


def foreach_batch(
    namespace: NamespaceSpec | LanceNamespace,
    table: TableId | str,
    *,
    mode: EpochMode = "append",
    on: Sequence[str] | None = None,
    schema_mode: SchemaMode = "strict",
    when_matched: WhenMatched = "update",
    sequence_by: str | None = None,
    delete_when: str | None = None,
    helper_columns: Sequence[str] | None = None,
    update_columns: Sequence[str] | None = None,
    options: TableLayout | None = None,
    query_id: str | None = None,
) -> Callable[[DataFrame, int], None]:
    """Return a function for ``foreachBatch`` that writes each epoch of a query to a table, once.

    An epoch is identified by the query's id, which Spark keeps in the checkpoint, and by its number: if the
    query stops after the commit and before Spark recorded it, the repeated epoch is found in the table. An
    epoch that is in the table with other rows is refused.

    Args:
        namespace: the namespace of the table, or a `NamespaceSpec` to connect from.
        table: its identifier, such as ``db$table``.
        mode: ``append``, ``upsert``, or ``overwrite``, by which each epoch replaces the one before.
        on: the key columns of an ``upsert``.
        schema_mode: see `Table.upsert`.
        when_matched: see `Table.upsert`.
        sequence_by: see `Table.upsert`; without it, the keys of an epoch must be unique.
        delete_when: see `Table.upsert`.
        helper_columns: see `Table.upsert`.
        update_columns: see `Table.upsert`.
        options: the storage layout of a new dataset.
        query_id: replaces the query's id; no other query that writes to the table may have it. Required on
            Spark Connect, where Spark doesn't tell the id. Its epochs must not start from 0 again.

    Returns:
        A function of a DataFrame and the epoch's number. It raises the errors of `Table.append`.

    Raises:
        InvalidInputError: (13) an argument is invalid.
    """
    if query_id is not None:
        check_query_id(query_id)
    if mode == "overwrite" and on is not None:
        raise spec_errors.InvalidInputError("on: only for an upsert; an overwrite replaces the epoch before")
    change = change_of(
        mode,
        on=on,
        schema_mode=schema_mode,
        when_matched=when_matched,
        sequence_by=sequence_by,
        delete_when=delete_when,
        helper_columns=helper_columns,
        update_columns=update_columns,
    )
    request = WriteRequest(change, options=options or DEFAULT_LAYOUT)

    def write(frame: DataFrame, epoch: int) -> None:
        write_epoch(frame, epoch, namespace, table, request, query_id)

    return write


def write_epoch(
    frame: DataFrame,
    epoch: int,
    namespace: NamespaceSpec | LanceNamespace,
    table: TableId | str,
    request: WriteRequest,
    query_id: str | None = None,
) -> WriteResult:
    """Write one epoch; see `foreach_batch`.

    Args:
        frame: its rows.
        epoch: its number.
        namespace: the namespace of the table, or a `NamespaceSpec` to connect from.
        table: its identifier.
        request: how to write it; the key is added here.
        query_id: replaces the query's id.
    """
    key = epoch_key(running_query(frame.sparkSession) if query_id is None else query_id, epoch)
    rows = FrameRows(frame)
    with resolved_table(namespace, table) as target, ExitStack() as cached:
        # Rows that a comparison leaves out aren't written, so that a write can't digest them.
        digests = request.upsert is None or not request.upsert.chooses_rows
        identity = replace(request.identity, key=key, on_existing_key="skip")
        context = WriteContext.begin(target, replace(request, identity=identity, digest_rows=digests))
        lookup = context.lookup
        # A query that resumes repeats its last epoch: that is no reason to warn.
        found = lookup.earlier
        if found is not None and lookup.latest is not None:
            compared = lookup.latest.schema if digests else _AS_THEY_ARE
            check_same_rows(target.id, key, found, rows.digest(compared))
        elif found is None and not digests:
            cached.enter_context(_cached(frame))
            write = replace(lookup.write, fingerprint=rows.digest(_AS_THEY_ARE))
            context = replace(context, lookup=replace(lookup, write=write))
        if found is None:
            result = write_rows(rows, context)
        else:
            result = lookup.found_result(found)
            notify(target.namespace, Ended(result))
    _log.info("%s", result)
    return result


@contextmanager
def _cached(frame: DataFrame) -> Iterator[None]:
    """Let Spark keep the rows of an epoch for the block, which uses them twice, unless it does so anyway."""
    if frame.is_cached:
        yield
        return
    frame.persist()
    try:
        yield
    finally:
        frame.unpersist()
