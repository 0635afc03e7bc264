"""Writes that a table's entry remembers, beside the specification: what a Spark driver asks and tells."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_lancens.namespace.interface.core import NamespaceCore
from airflow_provider_lancens.namespace.operations.writes import WriteOperations
from airflow_provider_lancens.namespace.requests import table_id
from airflow_provider_lancens.namespace.writes import Write


class WriteRequests(NamespaceCore):
    """The newest writes of tables, by their idempotency keys."""

    def find_write(self, table: Sequence[str], key: str) -> Write | None:
        """The write under an idempotency key, while the entry remembers it.

        Args:
            table: its identifier.
            key: the idempotency key.

        Raises:
            LanceNamespaceError: 4, 13, 19 the entry's parameter can't be read.
        """
        return WriteOperations(self._tables).find(table_id(table, self._metastore), key)

    def note_write(self, table: Sequence[str], write: Write) -> None:
        """Let the entry remember a write; all its other parameters stay.

        Args:
            table: its identifier.
            write: what was committed. Where enough newer ones are remembered, nothing changes.

        Raises:
            LanceNamespaceError: 4, 13, 14 others were always faster, 19.
        """
        WriteOperations(self._tables).note(table_id(table, self._metastore), write)
