"""Run a streaming query with the trigger `availableNow`: a stream as a scheduled task."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.spark.options import WriteRequest
from airflow_provider_lancens.spark.results import Outcome, StreamResult, WriteResult
from airflow_provider_lancens.spark.session import from_another_thread, is_remote
from airflow_provider_lancens.spark.streaming.foreach_batch import write_epoch
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec, resolved_table

if TYPE_CHECKING:
    from lance_namespace import LanceNamespace
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


def write_available(
    frame: DataFrame,
    namespace: NamespaceSpec | LanceNamespace,
    table: TableId | str,
    request: WriteRequest,
    *,
    checkpoint: str,
) -> StreamResult:
    """Write the available rows of a streaming DataFrame, in one or more epochs, each once.

    Args:
        frame: the streaming DataFrame.
        namespace: the namespace of the table, or a `NamespaceSpec` to connect from.
        table: its identifier.
        request: how to write an epoch.
        checkpoint: the folder where Spark keeps the query's progress. It belongs to this query and table.

    Raises:
        InvalidInputError: (13) the frame isn't a stream, or its checkpoint doesn't fit.
        UnsupportedOperationError: (0) the session is one of Spark Connect.
        LanceNamespaceError: see `Table.append`.
    """
    _check(frame)
    started = time.monotonic()
    results: list[WriteResult] = []
    failures: list[Exception] = []

    def write(rows: DataFrame, epoch: int) -> None:
        try:
            results.append(write_epoch(rows, epoch, namespace, table, request))
        except Exception as error:
            failures.append(error)
            raise

    writer = frame.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint)
    try:
        with _stopped_if_interrupted(writer.trigger(availableNow=True).start()) as query:
            query.awaitTermination()
    except Exception:
        if failures:  # Spark's own error has its text, not its type
            raise failures[0] from None
        raise
    return _result(namespace, table, request.change.MODE, results, time.monotonic() - started)


@contextmanager
def _stopped_if_interrupted(query: StreamingQuery) -> Iterator[StreamingQuery]:
    """Stop the query if the block is left by an exception, such as a signal handler's."""
    try:
        yield query
    except BaseException:
        # This thread's connection may be waiting for the query's end.
        from_another_thread(query.stop)
        raise


def _check(frame: DataFrame) -> None:
    if not getattr(frame, "isStreaming", False):  # a function may return anything
        raise spec_errors.InvalidInputError(
            "source: expected a streaming DataFrame, made by spark.readStream; for other rows use "
            f"LanceAppendOperator; got a {type(frame).__name__}"
        )
    if is_remote(frame.sparkSession):
        raise spec_errors.UnsupportedOperationError(
            "streams on Spark Connect: the server runs the function of foreachBatch, and its results are not "
            "known here; run the query where the driver is, or write it with foreach_batch"
        )


def _result(
    namespace: NamespaceSpec | LanceNamespace,
    table: TableId | str,
    operation: str,
    results: list[WriteResult],
    seconds: float,
) -> StreamResult:
    # An epoch that was found was committed by the try before when it stopped.
    written = [result for result in results if result.outcome != "unchanged"]
    with resolved_table(namespace, table) as target:
        name, location, newest = str(target.id), target.dataset.location, target.latest_version()
    return StreamResult(
        table=name,
        location=location,
        operation=operation,
        outcome=_outcome(written),
        version=written[-1].version if written else newest,
        previous_version=written[0].previous_version if written else newest,
        epochs=len(results),
        inserted=sum(result.inserted for result in written),
        updated=sum(result.updated for result in written),
        deleted=sum(result.deleted for result in written),
        files=sum(result.files for result in written),
        bytes=sum(result.bytes for result in written),
        seconds=round(seconds, 3),
    )


def _outcome(written: list[WriteResult]) -> Outcome:
    if any(result.is_done for result in written):
        return "done"
    return "found" if written else "unchanged"
