"""Probe whether a server checks an alter's expectation (HIVE-26882), regardless of its version.

HMS 3.1.3 ignores the condition silently, and 2.3.10 and 3.1.3 report the same version. So each server
is probed, once, before the first alter that depends on it. The probe is necessary, not sufficient:
on MySQL and MariaDB the check itself was corrected later (HIVE-28121).
"""

from __future__ import annotations

import threading
import uuid
from typing import Any

from lance_namespace.errors import UnsupportedOperationError
from thrift.Thrift import TException

from airflow_provider_lancens.identifiers import NamespaceId
from airflow_provider_lancens.namespace.hive import converters
from airflow_provider_lancens.namespace.hive.connection import Connection
from airflow_provider_lancens.namespace.hive.errors import is_refused_alter
from airflow_provider_lancens.namespace.hive.settings import Endpoint
from airflow_provider_lancens.namespace.metastore_protocol import Expectation

_IMPOSSIBLE = Expectation("lancens_probe", "a value that it never has")


class HiveCasProbe:
    """Probe results of the servers of one metastore."""

    def __init__(self) -> None:
        """Start without results."""
        self._checks: dict[Endpoint, bool] = {}
        self._lock = threading.Lock()

    def known(self, endpoint: Endpoint) -> bool | None:
        """Return the probe's result for a server; None if it wasn't probed."""
        return self._checks.get(endpoint)

    def require(self, connection: Connection, namespace: NamespaceId) -> None:
        """Check that the connection's server checks expectations; probe it if that is unknown.

        Args:
            connection: connection to the server that the alter will be sent to.
            namespace: an existing database, in which a scratch view is created and dropped.

        Raises:
            UnsupportedOperationError: (0) it doesn't; the message says which servers do.
        """
        endpoint = connection.endpoint
        # One thread probes, the others wait for its result. A probe may hang, so the wait has the deadline.
        if not self._lock.acquire(timeout=connection.deadline.left()):
            raise connection.deadline.error(f"another thread's probe of {endpoint} ")
        try:
            if endpoint not in self._checks:
                self._checks[endpoint] = _refuses_the_impossible(connection, namespace)
        finally:
            self._lock.release()
        if not self._checks[endpoint]:
            raise UnsupportedOperationError(
                f"metastore {endpoint} ignores the condition of an alter, so managed_by=impl would lose "
                "commits there; use one with HIVE-26882 (2.3.10, 4.0.0 and later), or managed_by=storage"
            )


def _refuses_the_impossible(connection: Connection, namespace: NamespaceId) -> bool:
    # A view, since it has no folder: nothing is left behind on the storage.
    view = namespace.table(f"lancens_probe_{uuid.uuid4().hex}")
    database, client = connection.dialect.database(namespace), connection.client
    raw: Any = converters.new_view(connection.dialect, view, {_IMPOSSIBLE.key: "the value that it has"})
    client.create_table(raw)
    try:
        client.alter_table_with_environment_context(
            database, view.name, raw, converters.environment_context(connection.dialect, _IMPOSSIBLE)
        )
    except TException as error:
        if not is_refused_alter(error):
            raise
        return True
    finally:
        client.drop_table(database, view.name, False)
    return False
