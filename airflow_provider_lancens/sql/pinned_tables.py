"""The tables of queries, each opened at one version however many queries read it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.identifiers import FIRST_STAGED, InvalidIdentifierError, TableId, staged_name
from airflow_provider_lancens.sql.table_scan import TableScan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_lancens.spark.lance_catalog import LanceCatalog, TableRef
    from airflow_provider_lancens.spark.lance_table import Table

_log = logging.getLogger(__name__)

_VERSION = "@"


@dataclass(frozen=True, slots=True)
class QueriedTable:
    """A table at a version."""

    table: TableId
    version: int
    scan: TableScan = field(repr=False)

    def __str__(self) -> str:
        version = staged_name(self.version) if self.version >= FIRST_STAGED else self.version
        return f"{self.table} at version {version}"


class PinnedTables:
    """The tables that queries may read. A version is looked up when a query first names the table.

    Args:
        lake: the catalog.
        tables: names for tables, each with what `LanceCatalog.table` takes, or ``database.table@version``.
        database: the database of tables that are named without one; None for none.
    """

    def __init__(
        self, lake: LanceCatalog, tables: Mapping[str, TableRef] | None = None, database: str | None = None
    ) -> None:
        self.lake = lake
        self.database = database
        self._given = {name.lower(): ref for name, ref in (tables or {}).items()}
        self._pinned: dict[tuple[str, ...], QueriedTable] = {}
        self._newest: dict[tuple[str, ...], QueriedTable] = {}
        self.last_read: list[QueriedTable] = []
        """The tables of the last query."""

    def is_given(self, name: tuple[str, ...]) -> bool:
        """Return whether `tables` has a name, which goes before any other meaning."""
        return len(name) == 1 and name[0].lower() in self._given

    def find(self, name: tuple[str, ...]) -> QueriedTable:
        """Return the table that a query names.

        Args:
            name: the levels of the name, outermost first. The last one may contain others, in quotes, and end
                with a version: ``("shop", "orders@12")``, ``("shop.orders@staged-…",)``.

        Raises:
            NamespaceNotFoundError: (1), TableNotFoundError: (4) there is no such table.
            TableTagNotFoundError: (8), TableVersionNotFoundError: (11) it has no such version.
            InvalidInputError: (13) it isn't the name of a table.
        """
        key = self._key(name)
        if key not in self._pinned:
            with self._explained(name):
                self._pinned[key] = self._pin(self._table_of(name))
            _log.info("SQL reads table %s", self._pinned[key])
        return self._pinned[key]

    def _key(self, name: tuple[str, ...]) -> tuple[str, ...]:
        """Return a key that all names of a table at a version share; only a tag's name has a case."""
        *outer, last = name
        identifier, at, version = last.partition(_VERSION)
        if self.is_given(name):
            version = version.lower()
        return (*(level.lower() for level in outer), f"{identifier.lower()}{at}{version}")

    def _table_of(self, name: tuple[str, ...]) -> Table:
        if self.is_given(name):
            ref = self._given[name[0].lower()]
            return self._written(ref) if isinstance(ref, str) else self.lake.table(ref)
        *outer, last = name
        if not outer and self.database and len(TableId.written(last.partition(_VERSION)[0])) == 1:
            outer = list(TableId.written(self.database).parts)
        return self._written(last, outer)

    def _written(self, text: str, outer: list[str] | None = None) -> Table:
        if text.lstrip().startswith("{"):
            raise spec_errors.InvalidInputError(
                "it is a mapping as text; pass the output of the task, .output, rather than a template"
            )
        identifier, at, version = text.partition(_VERSION)
        inner = (identifier,) if outer else TableId.written(identifier).parts
        table = self.lake.table(TableId.of((*(outer or ()), *inner)))
        if at and not version:
            raise spec_errors.InvalidInputError(f"no version follows the {_VERSION}")
        return table.at(version) if version else table

    def _pin(self, table: Table) -> QueriedTable:
        from airflow_provider_lancens.spark.storage_failures import storage_failures

        if not table.is_pinned and table.id in self._newest:  # another name of it
            return self._newest[table.id]
        with table.at()._opened() as (target, dataset):
            location, options = target.dataset.location, target.dataset.storage_options
        failures = partial(storage_failures, location, options)
        found = QueriedTable(target.id, dataset.version, TableScan(dataset, failures))
        if not table.is_pinned:
            self._newest[table.id] = found
        return found

    @contextmanager
    def _explained(self, name: tuple[str, ...]) -> Iterator[None]:
        try:
            yield
        except InvalidIdentifierError as error:
            raise spec_errors.InvalidInputError(self._explanation(name, error)) from error
        except (
            spec_errors.InvalidInputError,
            spec_errors.NamespaceNotFoundError,
            spec_errors.TableNotFoundError,
        ) as error:
            raise type(error)(self._explanation(name, error)) from error

    def _explanation(self, name: tuple[str, ...], error: Any) -> str:
        given = f", or is one of those in tables: {', '.join(sorted(self._given))}" if self._given else ""
        return (
            f"table {'.'.join(name)!r} of the query: {error}; a table is written database.table, or with a "
            f'version "database.table@12"{given}'
        )
