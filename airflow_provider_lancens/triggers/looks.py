"""The blocking half of a poll: looks at tables through one connection. Runs in worker threads only."""

from __future__ import annotations

import sys
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.hooks.base import LanceHook
from airflow_provider_lancens.hooks.errors import airflow_error
from airflow_provider_lancens.hooks.versions import TableVersion
from airflow_provider_lancens.triggers.collector import loading

if TYPE_CHECKING:
    from airflow_provider_lancens.namespace.base import MetastoreNamespace

Outcome = TableVersion | Exception | None
"""What a look at a table came to; None where it isn't there yet, or no version of it."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A table that only the storage knows the version of, by a request of its own."""

    location: str


class Looks:
    """Looks through one Airflow connection as it was read once.

    Whatever namespace the hook makes keeps its connection to the metastore open between two looks.
    """

    def __init__(self, hook: LanceHook) -> None:
        """Take a hook; nothing is opened."""
        self._hook = hook

    def identity(self) -> tuple[type[LanceHook], dict[str, str]]:
        """What makes two connections the same: where they lead, and as whom. It holds secrets.

        Raises:
            AirflowFailException: the connection describes no namespace.
            LanceRetryableError: it takes credentials from elsewhere, and nobody answered there.
        """
        return type(self._hook), self._hook.namespace_properties()

    def entries(self, tables: Collection[str]) -> dict[str, Outcome | Stored]:
        """Look at the entries of all these tables, one call a database."""
        found = self._namespace().look_at_tables(tables)
        return {table: self._outcome(table, one) for table, one in found.items()}

    def stored(self, table: str, location: str) -> Outcome:
        """Look for the newest version that lies at a table's location, by one listing request."""
        from lance_namespace.errors import LanceNamespaceError

        try:
            version = self._namespace().stored_version(location)
        except LanceNamespaceError as error:
            return self._failure(table, error)
        return TableVersion(table, version, location) if version else None

    def close(self) -> None:
        """Give up the connection to the metastore."""
        self._hook.close()

    def _namespace(self) -> MetastoreNamespace:
        if "airflow_provider_lancens.namespace.storage" in sys.modules:
            return self._hook.get_conn()
        with loading():
            import airflow_provider_lancens.namespace.storage  # noqa: F401 - the rest of what looks load

            return self._hook.get_conn()

    def _outcome(self, table: str, found: Any) -> Outcome | Stored:
        if found is None:
            return None
        if isinstance(found, Exception):
            return self._failure(table, found)
        if found.version is None:
            return Stored(found.location)
        return TableVersion(table, found.version, found.location) if found.version else None

    def _failure(self, table: str, error: Any) -> Exception:
        # Made anew for each table, without a traceback: a wait keeps it for as long as the outage lasts.
        return airflow_error(f"looking at table {table!r} through {self._hook.lance_conn_id!r}", error)
