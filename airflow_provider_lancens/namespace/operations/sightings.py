"""The newest versions of many tables at once, for those that look again and again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from lance_namespace.errors import (
    LanceNamespaceError,
    NamespaceNotFoundError,
    ServiceUnavailableError,
    ThrottlingError,
    UnauthenticatedError,
)

from airflow_provider_lancens.identifiers import NamespaceId, TableId
from airflow_provider_lancens.namespace import marks
from airflow_provider_lancens.namespace.metastore import Metastore, Table
from airflow_provider_lancens.namespace.operations.tables import location_of

_OF_THE_SERVER = (ServiceUnavailableError, ThrottlingError, UnauthenticatedError)
"""Whatever it was asked, it would answer the same to the next question too."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """A Lance table as one look at its entry found it."""

    location: str
    """The root of its data set: an absolute path or a URL."""
    version: int | None
    """The newest where the metastore decides, 0 while it is empty; None where the storage decides."""


Found = Sighting | LanceNamespaceError | None
"""What a look found: a table, what went wrong with this one table, or None where there is no such table."""


@dataclass(frozen=True, slots=True)
class SightingOperations:
    """Looks at entries, one batch a namespace."""

    metastore: Metastore

    def look(self, tables: Iterable[TableId]) -> dict[TableId, Found]:
        """Look at the entries of many tables; none that fails fails another.

        Args:
            tables: any number, in any namespaces.

        Returns:
            What was found, for each.
        """
        found: dict[TableId, Found] = {}
        away: LanceNamespaceError | None = None
        for namespace, wanted in _by_namespace(tables).items():
            if away is None:
                try:
                    found |= self._look_into(namespace, wanted)
                except _OF_THE_SERVER as error:
                    away = error
            if away is not None:
                found |= dict.fromkeys(wanted, away)
        return found

    def _look_into(self, namespace: NamespaceId, tables: Sequence[TableId]) -> dict[TableId, Found]:
        try:
            entries = self.metastore.get_tables(namespace, [table.name for table in tables])
        except NamespaceNotFoundError:
            return dict.fromkeys(tables)
        except _OF_THE_SERVER:
            raise
        except LanceNamespaceError as error:
            if len(tables) == 1:
                return {tables[0]: error}
            # One entry that the server stumbles over fails the whole batch: find it.
            middle = len(tables) // 2
            return self._look_into(namespace, tables[:middle]) | self._look_into(namespace, tables[middle:])
        return dict.fromkeys(tables) | _sightings(entries)


def _by_namespace(tables: Iterable[TableId]) -> dict[NamespaceId, list[TableId]]:
    groups: dict[NamespaceId, list[TableId]] = {}
    for table in tables:
        groups.setdefault(table.namespace, []).append(table)
    return groups


def _sightings(entries: Collection[Table]) -> dict[TableId, Found]:
    return {entry.id: _sighting(entry) for entry in entries}


def _sighting(entry: Table) -> Found:
    try:
        marks.check_lance(entry)
        version = marks.managed_version(entry) if marks.is_managed(entry) else None
        return Sighting(location_of(entry), version)
    except LanceNamespaceError as error:
        return error
