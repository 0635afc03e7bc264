"""A callback for a table without new data, in the plugins folder, where the triggerer finds it."""

from __future__ import annotations

import logging
from typing import Any

_log = logging.getLogger(__name__)


# [START howto_freshness_callback]
async def tell(table: str, context: dict[str, Any]) -> None:
    """Tell that a run has waited too long for new data; here the log is told.

    Args:
        table: the table.
        context: what Airflow says of the deadline: ``dag_run`` and ``deadline``.
    """
    run = context["dag_run"]["dag_run_id"]
    _log.warning("Table %s: no new data since run %s began, which goes on waiting", table, run)


# [END howto_freshness_callback]
