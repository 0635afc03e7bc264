"""Looks at many tables at once, beside the specification: what a triggerer's poll asks."""

from __future__ import annotations

from collections.abc import Collection

from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.identifiers import InvalidIdentifierError, TableId
from airflow_provider_lancens.namespace import storage
from airflow_provider_lancens.namespace.interface.core import NamespaceCore
from airflow_provider_lancens.namespace.operations.sightings import Found, SightingOperations
from airflow_provider_lancens.namespace.requests import table_id


class SightingRequests(NamespaceCore):
    """The newest versions of many tables, by one batch a namespace."""

    def look_at_tables(self, tables: Collection[str]) -> dict[str, Found]:
        """Look at the entries of many tables; none that fails fails another.

        Args:
            tables: their identifiers, ``database$table``.

        Returns:
            For each a `Sighting`, an error, or None where there is no such table. An error is the
            table's own, or for all that weren't asked for any more: the server is away (17), throttles
            (21), or knows nobody of this name (16).
        """
        found: dict[str, Found] = {}
        asked: dict[TableId, list[str]] = {}
        for text in tables:
            try:
                asked.setdefault(self._parse(text), []).append(text)
            except InvalidInputError as error:
                found[text] = error
        for table, seen in SightingOperations(self._metastore).look(asked).items():
            found |= dict.fromkeys(asked[table], seen)
        return found

    def stored_version(self, location: str) -> int | None:
        """The newest version at a location, by one listing request; None where none is; 15, 16, 17."""
        return storage.latest_version(location, self._config.storage_options)

    def _parse(self, text: str) -> TableId:
        try:
            return table_id(TableId.parse(text).parts, self._metastore)
        except InvalidIdentifierError as error:
            raise InvalidInputError(str(error)) from error
