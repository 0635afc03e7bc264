"""How a waiting trigger looks at a table: the one seam between waits and the poll behind them.

A wait asks for `sightings` and knows nothing of connections, threads or back-off. All waits of an event
loop that name the same connection and the same tick share one `Poller`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_lancens.hooks.errors import LanceRetryableError
from airflow_provider_lancens.hooks.versions import TableVersion
from airflow_provider_lancens.triggers.poller import Poller
from airflow_provider_lancens.triggers.watch import Watch

log = logging.getLogger(__name__)

_Key = tuple[str, float]
_POLLERS: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[_Key, Poller]] = WeakKeyDictionary()


async def sightings(
    lance_conn_id: str, table: str, interval: float
) -> AsyncGenerator[TableVersion | None, None]:
    """Hear of a table whenever a look finds it otherwise than the last one did.

    Looks that nobody answered are logged once, and go on: later and later while nobody answers, and with
    the connection read anew, so that a metastore may be restarted, or moved, under a wait.

    Args:
        lance_conn_id: the Airflow connection.
        table: its identifier, ``database$table``.
        interval: seconds between two looks.

    Yields:
        What a look found, the first time and whenever that changed; None where the table isn't there, or no
        version of it.

    Raises:
        AirflowFailException: no look will ever be answered.
    """
    with _watching(lance_conn_id, table, interval) as watch:
        while True:
            outcome = await watch.news()
            if isinstance(outcome, LanceRetryableError):
                log.warning("%s; the wait goes on", outcome)
            elif isinstance(outcome, AirflowFailException):
                raise AirflowFailException(str(outcome))  # its own: an outcome may be told to many waits
            elif isinstance(outcome, Exception):
                raise outcome
            else:
                yield outcome


@contextmanager
def _watching(lance_conn_id: str, table: str, interval: float) -> Iterator[Watch]:
    pollers = _POLLERS.setdefault(asyncio.get_running_loop(), {})
    key = lance_conn_id, interval
    poller = pollers.get(key)
    if poller is None or poller.is_over:
        poller = pollers[key] = Poller(lance_conn_id, interval)
    watch = poller.watch(table)
    try:
        yield watch
    finally:
        poller.leave(watch)
        if poller.is_over and pollers.get(key) is poller:
            del pollers[key]
