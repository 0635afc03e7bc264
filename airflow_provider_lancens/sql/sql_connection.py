"""Queries by DuckDB, as a connection of the Python DB-API (PEP 249)."""

from __future__ import annotations

import os
import re
import tempfile
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.sql.pinned_tables import QueriedTable
from airflow_provider_lancens.sql.query import Query

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from airflow_provider_lancens.sql.pinned_tables import PinnedTables

DEFAULT_MEMORY = "1GB"
"""How much memory DuckDB takes before it moves intermediate results to files."""
_MEMORY = re.compile(r"[1-9]\d*(\.\d+)? ?[KMGT]i?B", re.IGNORECASE)
_MOST_THREADS = 4
_FETCHED = 1000
_CATALOG_LEVELS = 3
_NO_COLUMN = ("Referenced column", "does not have a column named", "Could not find key")
"""How DuckDB begins to say that a column doesn't exist."""
_ISOLATED = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",  # or a query could read variables of this process as tables
}
_LOCKED = (
    "SET enable_progress_bar = false",
    "SET TimeZone = 'UTC'",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)
_TAKEN = ("information_schema", "memory", "pg_catalog", "system", "temp")
"""Names that DuckDB has itself, in which no database can be shown."""

Parameters = Sequence[Any] | Mapping[str, Any] | None
T = TypeVar("T")


class SqlConnection:
    """A connection to the tables of a catalog, which can only be read.

    Args:
        tables: the tables.
        memory_limit: how much memory a query takes before it moves intermediate results to files, such as
            ``2GB``. What Lance needs to read the rows, and the result, are besides it.
        attempt: wraps each step of a query, to convert errors.
    """

    def __init__(
        self,
        tables: PinnedTables,
        memory_limit: str = DEFAULT_MEMORY,
        attempt: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        self.tables = tables
        self.memory_limit = memory_limit
        self.attempt = attempt
        self._cursors: list[SqlCursor] = []

    def cursor(self) -> SqlCursor:
        """Return a cursor, with a query of its own."""
        self._cursors.append(SqlCursor(self))
        return self._cursors[-1]

    def commit(self) -> None:
        """Do nothing: nothing was changed."""

    def rollback(self) -> None:
        """Do nothing: nothing was changed."""

    def close(self) -> None:
        """Close all cursors."""
        for cursor in self._cursors:
            cursor.close()
        self._cursors.clear()


class SqlCursor:
    """A cursor: one query, and its rows."""

    arraysize = 1
    rowcount = -1

    def __init__(self, connection: SqlConnection) -> None:
        self._connection = connection
        self._running: _RunningQuery | None = None

    @property
    def description(self) -> list[tuple[Any, ...]] | None:
        """The columns of the rows, of each the name and the type; None if no query was run."""
        return None if self._running is None else self._running.description

    def execute(self, sql: str, parameters: Parameters = None) -> SqlCursor:
        """Run a query.

        Args:
            sql: the query.
            parameters: the values of its ``?`` by position, or of its ``$name`` by name.

        Raises:
            TableNotFoundError: (4), TableVersionNotFoundError: (11) it names a table or a version that isn't
                there.
            TableColumnNotFoundError: (12) it names a column that isn't there.
            InvalidInputError: (13) it isn't a query, or can't be evaluated.
            ServiceUnavailableError: (17) the metastore or the storage didn't answer.
        """
        self.close()
        with self._connection.attempt():
            self._running = _RunningQuery(self._connection, sql, parameters)
        return self

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row; None if there is none."""
        if self._running is None:
            return None
        with self._connection.attempt():
            return self._running.fetchone()

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """Return the next rows."""
        return list(islice(self, size or self.arraysize))

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all further rows."""
        return list(self)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.fetchone, None)

    def close(self) -> None:
        """End the query; its rows can't be fetched any more."""
        if self._running is not None:
            self._running.close()
        self._running = None


class _RunningQuery:
    """A query that runs in a database of its own, in memory, in which the tables that it names are views."""

    def __init__(self, connection: SqlConnection, sql: str, parameters: Parameters) -> None:
        self._memory_limit = connection.memory_limit
        self._tables = connection.tables.last_read = list[QueriedTable]()
        self._ending = ExitStack()
        self._shown: dict[tuple[str, ...], QueriedTable] = {}
        """The tables by their names in DuckDB."""
        self._rows: deque[tuple[Any, ...]] = deque()
        try:
            self._database = self._open()
            query = Query.parse(self._database, sql)
            self._texts = [sql] if parameters else list(query.branches)
            with self._errors():
                for name in query.tables:
                    self._show(connection.tables, name, query.local_names)
                for statement in _LOCKED:
                    self._do(statement)
                self._run(partial(self._database.execute, self._texts.pop(0), parameters))
            self.description = self._database.description
        except BaseException:
            self.close()
            raise

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row, also of the next branch."""
        with self._errors():
            while not self._rows:
                self._rows.extend(self._run(partial(self._database.fetchmany, _FETCHED)))
                if not self._rows and not self._texts:
                    return None
                if not self._rows:
                    self._run(partial(self._database.execute, self._texts.pop(0)))
        return self._rows.popleft()

    def close(self) -> None:
        """End it, and remove its files."""
        self._ending.close()

    def _open(self) -> DuckDBPyConnection:
        duckdb = _duckdb()
        if not _MEMORY.fullmatch(str(self._memory_limit)):
            raise spec_errors.InvalidInputError(
                f"memory_limit={self._memory_limit!r}: is no amount of memory, such as '500MB' or '2GB'"
            )
        folder = tempfile.TemporaryDirectory(prefix="lance-sql-", ignore_cleanup_errors=True)
        self._ending.callback(folder.cleanup)
        settings = {
            **_ISOLATED,
            "memory_limit": self._memory_limit,
            "temp_directory": folder.name,
            "threads": str(min(_MOST_THREADS, os.cpu_count() or 1)),
        }
        database: DuckDBPyConnection = duckdb.connect(":memory:", config=settings)
        self._ending.callback(database.close)
        self._worker = self._ending.enter_context(ThreadPoolExecutor(1, "lance-sql"))
        return database

    def _run(self, part: Callable[[], T]) -> T:
        """Run a part of the query in another thread, so that a signal, as of a timeout, ends it at once."""
        running = self._worker.submit(part)
        try:
            return running.result()
        finally:
            if not running.done():
                self._database.interrupt()

    def _do(self, statement: str) -> None:
        self._database.execute(statement).fetchall()  # DuckDB 2 runs no other one before

    def _show(self, tables: PinnedTables, name: tuple[str, ...], local_names: Collection[str]) -> None:
        """Make a table visible by the name that the query has for it."""
        if len(name) == 1 and name[0].lower() in local_names and not tables.is_given(name):
            return
        if len(name) > 1 and name[0].lower() in _TAKEN:
            raise spec_errors.InvalidInputError(
                f"table {'.'.join(name)!r} of the query: {name[0]!r} is a name of DuckDB's own; write the "
                f'whole name in quotes: "{".".join(name)}"'
            )
        table = tables.find(name)
        if self._shown.setdefault(tuple(level.lower() for level in name), table) != table:
            raise spec_errors.InvalidInputError(
                f"table {'.'.join(name)!r} of the query: another name in it differs only in case, and SQL "
                "takes both for the same; give one of the two tables another name by tables"
            )
        if table not in self._tables:
            self._tables.append(table)
        table.scan.failure = None
        scanned = f"lancens_{self._tables.index(table)}"
        self._database.register(scanned, table.scan)
        *outer, _ = levels = [_quoted(level) for level in name]
        if len(levels) == _CATALOG_LEVELS:
            self._do(f"ATTACH IF NOT EXISTS ':memory:' AS {outer[0]}")
        if outer:
            self._do(f"CREATE SCHEMA IF NOT EXISTS {'.'.join(outer)}")
        kind = "VIEW" if outer else "TEMP VIEW"
        self._do(f"CREATE OR REPLACE {kind} {'.'.join(levels)} AS FROM temp.main.{scanned}")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        duckdb = _duckdb()
        try:
            yield
        except duckdb.Error as error:
            failures = [table.scan.failure for table in self._tables if table.scan.failure is not None]
            if failures:
                raise failures[0] from None
            raise self._specified(error) from error

    def _specified(self, error: Exception) -> spec_errors.LanceNamespaceError:
        duckdb = _duckdb()
        text = str(error).strip()
        if isinstance(error, duckdb.OutOfMemoryException):
            return spec_errors.InvalidInputError(
                f"sql: it needs more memory than memory_limit={self._memory_limit!r}: {text}; set a greater "
                "memory_limit in hook_params, or let the query group less at a time"
            )
        if isinstance(error, duckdb.IOException):
            return spec_errors.ServiceUnavailableError(f"sql: {text}")
        if isinstance(error, duckdb.BinderException) and any(said in text for said in _NO_COLUMN):
            return spec_errors.TableColumnNotFoundError(f"sql: {text}\n{self._columns()}")
        return spec_errors.InvalidInputError(f"sql: {text}")

    def _columns(self) -> str:
        lines = []
        for table in self._tables:
            lines.append(f"columns of {table}: {', '.join(table.scan.schema.names)}")
            if table.scan.unreadable:
                lines.append(f"not readable by SQL: {', '.join(table.scan.unreadable)}")
        return "; ".join(lines)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError as error:
        raise spec_errors.UnsupportedOperationError(
            "SQL on Lance tables needs DuckDB: install the extra [sql] of airflow-provider-lancens on workers"
        ) from error
    return duckdb
