"""The last line that a write logs: the result, how to repeat a skipped write, and the page of the version."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

from airflow_provider_lancens.links import table_page_url
from airflow_provider_lancens.operators._spark.idempotency import ON_EXISTING_KEY_CONF

if TYPE_CHECKING:
    from airflow_provider_lancens.spark.results import StreamResult, WriteResult

_log = logging.getLogger(__name__)


def log_result(lance_conn_id: str, result: WriteResult | StreamResult, again: str | None = None) -> None:
    """Log the result of a write, and the page of the version with its rows.

    Args:
        lance_conn_id: the connection of the table.
        result: the result.
        again: if the write was skipped, the run's configuration that makes it again, see `written_again`.
    """
    page = table_page_url(lance_conn_id, result.table, result.version)
    if again is None or result.outcome != "skipped":
        _log.info("Done: %s; see %s", result, page)
        return
    # The skipped write itself has already been logged as a warning.
    _log.warning(
        "To write this interval again, run it with the configuration %s, such as by a backfill that "
        "reprocesses completed runs; see %s",
        again,
        page,
    )


def written_again(task_id: str) -> str:
    """Return the configuration of a run that makes a task's skipped write again, as JSON."""
    return json.dumps({ON_EXISTING_KEY_CONF: {task_id: "redo"}})
