"""Hooks of the connections that were used last, kept open for a while."""

from __future__ import annotations

import threading
import time

from airflow_provider_lancens.hooks.airflow_errors import AirflowNotFoundException
from airflow_provider_lancens.hooks.connection_fields import connection_types
from airflow_provider_lancens.hooks.lance_hook import LanceHook, get_connection

KEEP_SECONDS = 60.0


class OpenHooks:
    """Hooks by connection; each is replaced after a while, so that a changed connection takes effect.

    Args:
        keep_seconds: how long a hook is used.
    """

    def __init__(self, keep_seconds: float = KEEP_SECONDS) -> None:
        self._keep_seconds = keep_seconds
        self._opened: dict[str, tuple[float, LanceHook]] = {}
        self._lock = threading.Lock()

    def get(self, conn_id: str) -> LanceHook:
        """Return the hook of a connection.

        Raises:
            AirflowNotFoundException: there is no such connection, or it isn't of one of this provider's
                types: whoever may read assets needn't know which other connections there are.
        """
        with self._lock:
            self._close_old()
            if conn_id in self._opened:
                return self._opened[conn_id][1]
        if not _is_of_lance(conn_id):
            raise AirflowNotFoundException(f"There is no Lance connection with the id {conn_id!r}.")
        hook = LanceHook.for_connection(conn_id)
        with self._lock:
            return self._opened.setdefault(conn_id, (time.monotonic(), hook))[1]

    def _close_old(self) -> None:
        limit = time.monotonic() - self._keep_seconds
        for conn_id in [conn_id for conn_id, (opened, _) in self._opened.items() if opened < limit]:
            # Who still reads through it opens another connection to the metastore.
            self._opened.pop(conn_id)[1].close()


def _is_of_lance(conn_id: str) -> bool:
    try:
        return get_connection(conn_id).conn_type in connection_types()
    except AirflowNotFoundException:
        return False
