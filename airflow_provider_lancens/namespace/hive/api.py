"""Thrift calls with retries: reads are retried on another server, changes never without verification."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lance_namespace.errors import LanceNamespaceError
from thrift.Thrift import TException

from airflow_provider_lancens.namespace.hive.connection import Connection, UnreadableReplyError
from airflow_provider_lancens.namespace.hive.errors import ErrorMap, hive_errors
from airflow_provider_lancens.namespace.hive.pool import LostReplyError, Pool, Rpc
from airflow_provider_lancens.namespace.hive.settings import ClientSettings


class HiveApi:
    """Calls to one metastore, with its exceptions translated."""

    def __init__(self, settings: ClientSettings, check_server: Callable[[Connection], None]) -> None:
        """Take the settings and the check of a new connection's server; nothing is opened."""
        self._pool = Pool(settings, check_server)

    def read(self, error_map: ErrorMap, attempt: str, rpc: Rpc[Any]) -> Any:
        """Make a read-only call; it is retried if its reply is lost.

        Args:
            error_map: mapping of exception types to errors for this call.
            attempt: description of the call, for the message.
            rpc: the call.
        """
        with hive_errors(error_map, attempt):
            return self._pool.read(rpc)

    def change(
        self, error_map: ErrorMap, attempt: str, rpc: Rpc[Any], took_effect: Callable[[], bool]
    ) -> None:
        """Make a call that changes something; if its reply is lost, verify on the server.

        Args:
            error_map: mapping of exception types to errors for this call.
            attempt: description of the call, for the message.
            rpc: the call; sent a second time only if `took_effect` returned false.
            took_effect: returns whether the change took effect on the server.
        """
        with hive_errors(error_map, attempt):
            try:
                self._pool.write(rpc)
            except (LostReplyError, UnreadableReplyError):
                if not took_effect():
                    self._send_again(rpc, took_effect)

    def _send_again(self, rpc: Rpc[Any], took_effect: Callable[[], bool]) -> None:
        try:
            self._pool.write(rpc)
        except (TException, LanceNamespaceError):
            # The first call may have arrived late, and have caused the refusal of this one.
            if not took_effect():
                raise

    def close(self) -> None:
        """Close idle connections."""
        self._pool.close()
