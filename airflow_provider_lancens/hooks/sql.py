"""Hooks of the connection types for Airflow's SQL operators: queries on tables at pinned versions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow.providers.common.sql.hooks.sql import DbApiHook

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException, airflow_errors
from airflow_provider_lancens.hooks.connection_fields import hook_of_connection_type, is_extra_field
from airflow_provider_lancens.hooks.lance_hook import LanceHook
from airflow_provider_lancens.provider_info import DEFAULT_CONNECTION

if TYPE_CHECKING:
    from airflow_provider_lancens.spark.lance_catalog import TableRef
    from airflow_provider_lancens.sql.pinned_tables import PinnedTables
    from airflow_provider_lancens.sql.sql_connection import SqlConnection


class RowsWithSource(list[Any]):
    """Rows whose text, which a check's message shows, names the versions that they were read from."""

    def __init__(self, rows: Iterable[Any], source: str) -> None:
        super().__init__(rows)
        self.source = source

    def __str__(self) -> str:
        return f"{list.__repr__(self)} (of {self.source})"


class RowWithSource(tuple[Any, ...]):  # noqa: SLOT001 it has the attributes of a named tuple
    """A row with the same text; a named tuple, which Airflow stores as an XCom."""

    _fields: tuple[str, ...]
    _field_defaults: Mapping[str, Any] = {}
    source: str

    @classmethod
    def of(cls, values: Iterable[Any], names: Iterable[str], source: str) -> RowWithSource:
        """Return the row with these values."""
        row = cls(values)
        row._fields, row.source = tuple(names), source
        return row

    def _asdict(self) -> dict[str, Any]:
        return dict(zip(self._fields, self, strict=True))

    def __str__(self) -> str:
        return f"{tuple.__repr__(self)} (of {self.source})"


class LanceSqlHook(DbApiHook):
    """SQL on Lance tables, which it can only read: what `Connection.get_hook` returns to Airflow's operators.

    Each table is opened at one version when a query first names it, and stays at that version for the hook.
    A query names it ``database.table``, or ``"database.table@version"``, or as `tables` does.

    Args:
        lance_conn_id: the connection.
        tables: tables by the names that queries use: each an XCom of a write or a sensor, which names a
            version, also a staged one; or ``database.table`` or ``database.table@version``.
        memory_limit: the memory that a query takes before it moves intermediate results to files of the
            worker, such as ``2GB``; 1 GB by default.
        schema: the database of tables that are named without one.
        log_sql: whether queries are logged.
        kwargs: the fields of the connection's extra, which Airflow's operators pass.
    """

    conn_name_attr = "lance_conn_id"
    default_conn_name = DEFAULT_CONNECTION
    supports_autocommit = False
    _placeholder = "?"

    def __init__(
        self,
        lance_conn_id: str = DEFAULT_CONNECTION,
        *,
        tables: Mapping[str, TableRef] | None = None,
        memory_limit: str | None = None,
        schema: str | None = None,
        log_sql: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(lance_conn_id=lance_conn_id, log_sql=log_sql)
        self.lance_conn_id = lance_conn_id
        self.schema = schema
        self._given = tables
        self._memory_limit = memory_limit
        self._others = kwargs

    @cached_property
    def lance(self) -> LanceHook:
        """The hook to the namespace and its tables."""
        return LanceHook.for_connection(self.lance_conn_id)

    @cached_property
    def tables(self) -> PinnedTables:
        """The tables of the queries, each at its version.

        Raises:
            AirflowFailException: `tables` isn't a mapping of names to tables, or another parameter is
                unknown.
        """
        from airflow_provider_lancens.spark.lance_catalog import LanceCatalog
        from airflow_provider_lancens.sql.pinned_tables import PinnedTables

        self._check_parameters()
        return PinnedTables(LanceCatalog(self.lance.get_conn), self._given, self.schema)

    def get_conn(self) -> SqlConnection:
        """Return a connection of the Python DB-API, whose errors are Airflow's.

        Raises:
            AirflowFailException: a parameter of the hook is invalid.
        """
        from airflow_provider_lancens.sql.sql_connection import DEFAULT_MEMORY, SqlConnection

        return SqlConnection(self.tables, self._memory_limit or DEFAULT_MEMORY, self._attempt)

    def get_records(
        self, sql: str | list[str], parameters: Iterable[Any] | Mapping[str, Any] | None = None
    ) -> Any:
        """Return all rows of a query, as a list of tuples.

        Args:
            sql: the query, or several.
            parameters: see `SqlCursor.execute`.

        Raises:
            LanceRetryableError: the metastore or the storage didn't answer.
            AirflowFailException: the query is invalid, or a table, a version or a column isn't there.
        """
        rows = super().get_records(sql, parameters)
        return RowsWithSource(rows, self._source) if isinstance(rows, list) else rows

    def get_first(
        self, sql: str | list[str], parameters: Iterable[Any] | Mapping[str, Any] | None = None
    ) -> Any:
        """Return the first row of a query; None if it has none. Raises as `get_records`."""
        row = super().get_first(sql, parameters)
        if not isinstance(row, tuple):
            return row
        return RowWithSource.of(row, (column[0] for column in self.last_description or ()), self._source)

    def test_connection(self) -> tuple[bool, str]:  # type: ignore[override] # its stub says None
        """Read the metastore's identity and a few namespaces, for Airflow's Test button."""
        return self.lance.test_connection()

    @property
    def _source(self) -> str:
        return ", ".join(map(str, self.tables.last_read)) or "no table"

    def _attempt(self) -> AbstractContextManager[None]:
        return airflow_errors(f"a query through connection {self.lance_conn_id!r}")

    def _check_parameters(self) -> None:
        for name in self._others:
            if not is_extra_field(self.lance.conn_type, name):
                raise AirflowFailException(
                    f"hook_params: {name!r} is unknown; expected tables, memory_limit, schema, log_sql"
                )
        given = self._given
        if given is not None and not (isinstance(given, Mapping) and all(map(_is_name, given))):
            raise AirflowFailException(
                'hook_params: tables is not a mapping of names to tables, such as {"orders": stage.output}; '
                f"got a {type(given).__name__}"
            )
        spellings = [name.lower() for name in given or ()]
        if alike := [name for name in given or () if spellings.count(name.lower()) > 1]:
            raise AirflowFailException(
                f"hook_params: tables has names that differ only in case, which SQL takes for one: {alike}"
            )


def _is_name(name: object) -> bool:
    return isinstance(name, str) and bool(name)


@hook_of_connection_type("lance_hive2")
class LanceHive2SqlHook(LanceSqlHook):
    """SQL through a connection of type ``lance_hive2``: see `LanceSqlHook`."""


@hook_of_connection_type("lance_hive3")
class LanceHive3SqlHook(LanceSqlHook):
    """SQL through a connection of type ``lance_hive3``: see `LanceSqlHook`."""


@hook_of_connection_type("lance_glue")
class LanceGlueSqlHook(LanceSqlHook):
    """SQL through a connection of type ``lance_glue``: see `LanceSqlHook`."""


@hook_of_connection_type("lance")
class LanceCatalogSqlHook(LanceSqlHook):
    """SQL through a connection of type ``lance``: see `LanceSqlHook`."""
