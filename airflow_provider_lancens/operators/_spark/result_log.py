"""The last line that an ingestion logs: what was written, and where to look at it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from airflow_provider_lancens.links import table_page_url

if TYPE_CHECKING:
    from airflow_provider_lancens.spark.results import WriteResult
    from airflow_provider_lancens.spark.streaming.write_available import StreamResult

_log = logging.getLogger(__name__)


def log_result(lance_conn_id: str, result: WriteResult | StreamResult) -> None:
    """Log the result of a write, and the page of the version with its rows.

    Args:
        lance_conn_id: the connection of the table.
        result: the result.
    """
    _log.info("Done: %s; see %s", result, table_page_url(lance_conn_id, result.table, result.version))
