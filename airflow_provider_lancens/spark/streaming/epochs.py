"""Epochs of streaming queries: what identifies one, so that it is written once.

Spark numbers the micro-batches of a query, and repeats one with the same number and rows if the query stopped
before it was done. The query's id is kept in its checkpoint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.spark.options import is_whole_number

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_provider_lancens.spark.keys import KeyedCommit

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
    """Check that an epoch that is repeated has the rows with which it was committed.

    If a checkpoint was restored from a backup, Spark may give numbers that the table already has to other
    rows, which would be lost if they were taken for those.

    Args:
        table: the table's identifier.
        key: the key of the epoch.
        earlier: its commit.
        digest: the digest of its rows now, see `row_digest`.

    Raises:
        InvalidInputError: (13) it has other rows.
    """
    if earlier.fingerprint != digest:
        raise spec_errors.InvalidInputError(
            f"table {table}: version {earlier.version} was committed as epoch {key!r} with "
            f"{earlier.counts.rows} rows, and the epoch has other ones now: the checkpoint is older than the "
            "table, and its next epochs have other rows too. Nothing was written; start a query with a new "
            "checkpoint from the table's current position"
        )
