"""How a Thrift call is made: reads again on another server, changes never blindly twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lance_namespace.errors import LanceNamespaceError
from thrift.Thrift import TException

from airflow_provider_lancens.namespace.hive.connection import Connection
from airflow_provider_lancens.namespace.hive.errors import Meanings, hive_errors
from airflow_provider_lancens.namespace.hive.pool import LostReplyError, Pool, Rpc
from airflow_provider_lancens.namespace.hive.settings import ClientSettings


class Calls:
    """Calls to one metastore, with its exceptions translated."""

    def __init__(self, settings: ClientSettings, admit: Callable[[Connection], None]) -> None:
        """Take the settings and what a new connection's server must pass; nothing is opened."""
        self._pool = Pool(settings, admit)

    def read(self, meanings: Meanings, attempt: str, rpc: Rpc[Any]) -> Any:
        """Make a call that changes nothing; a lost answer is asked for again.

        Args:
            meanings: what an exception's type means here.
            attempt: what is attempted on what, for the message.
            rpc: the call.
        """
        with hive_errors(meanings, attempt):
            return self._pool.read(rpc)

    def change(self, meanings: Meanings, attempt: str, rpc: Rpc[Any], happened: Callable[[], bool]) -> None:
        """Make a call that changes something; where its answer is lost, the server is asked.

        Args:
            meanings: what an exception's type means here.
            attempt: what is attempted on what, for the message.
            rpc: the call; sent a second time only after `happened` said no.
            happened: whether the change stands on the server.
        """
        with hive_errors(meanings, attempt):
            try:
                self._pool.write(rpc)
            except LostReplyError:
                if not happened():
                    self._send_again(rpc, happened)

    def _send_again(self, rpc: Rpc[Any], happened: Callable[[], bool]) -> None:
        try:
            self._pool.write(rpc)
        except (TException, LanceNamespaceError):
            # The first one may have arrived late, and be what this one was refused for.
            if not happened():
                raise

    def close(self) -> None:
        """Give up idle connections."""
        self._pool.close()
