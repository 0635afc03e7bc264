"""What a write answers, as data and as a line of a log."""

from __future__ import annotations

import logging
import time

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.spark.commit import Outcome
from airflow_provider_lancens.spark.options import WriteResult

_log = logging.getLogger(__name__)


def answer(table: TableId, outcome: Outcome, started: float) -> WriteResult:
    """The answer to a call that began at this moment of the monotonic clock; it is logged too."""
    result = result_of(table, outcome, started)
    _log.info("%s", sentence_of(result))
    return result


def result_of(table: TableId, outcome: Outcome, started: float) -> WriteResult:
    """The answer to a call that began at this moment of the monotonic clock."""
    commit = outcome.commit
    return WriteResult(
        table=str(table),
        version=commit.version,
        previous_version=commit.previous_version,
        rows=commit.counts.rows,
        files=commit.counts.files,
        bytes=commit.counts.bytes,
        seconds=round(time.monotonic() - started, 3),
        committed=outcome.made_here,
    )


def sentence_of(result: WriteResult) -> str:
    """What was written, for a person."""
    size = f"{result.rows:,} rows, {result.files} files, {result.bytes / 1e6:,.1f} MB"
    if not result.committed:
        return f"table {result.table}: nothing to commit, version {result.version} stands ({size})"
    rate = result.rows / max(result.seconds, 0.001)
    return (
        f"table {result.table}: committed version {result.version} with {size} "
        f"in {result.seconds:.1f} s ({rate:,.0f} rows/s)"
    )
