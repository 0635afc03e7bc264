"""Copies a table many times in a stopped metastore's Derby: creating as many by Thrift takes hours.

The metastore itself has written the first table and the first database. Their rows are copied inside Derby,
with new keys and names, so that the metastore finds what it would have written. Only the location stays the
same, and with it the folder and the dataset.
"""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from airflow_provider_lancens.embedded import Distribution
from airflow_provider_lancens.embedded.java import Jvm, find_java

_MOST = 1_000_000
"""Numbers that are written with six digits."""
_DIGITS = "(VALUES 0, 1, 2, 3, 4, 5, 6, 7, 8, 9)"


def copy_table(distribution: Distribution, folder: Path, database: str, table: str, copies: int) -> None:
    """Copy a table within its database, as ``{table}_000000`` and so on."""
    with ExitStack() as stack:
        derby = _Derby(stack, distribution, folder)
        derby.make_numbers(copies)
        derby.copy_tables(derby.database_id(database), table, "{old}")


def copy_database(distribution: Distribution, folder: Path, database: str, table: str, copies: int) -> None:
    """Copy a database, as ``{database}_000000`` and so on, each with a copy of one of its tables."""
    with ExitStack() as stack:
        derby = _Derby(stack, distribution, folder)
        derby.make_numbers(copies)
        old = derby.database_id(database)
        new = derby.copy("DBS", "DB_ID", old, {"NAME": "{old} || '_' || {digits}"})
        derby.copy_tables(old, table, str(new), keep_name=True)


class _Derby:
    def __init__(self, stack: ExitStack, distribution: Distribution, folder: Path) -> None:
        lock = stack.enter_context((folder / "copies.lock").open("w"))
        command = [find_java(distribution.java), "-Xmx512m", "-cp", ":".join(distribution.class_path)]
        jvm = Jvm(command, folder, folder / "copies.log", lock.fileno())
        stack.callback(jvm.kill)
        manager = stack.enter_context(jvm.gateway()).java.sql.DriverManager
        self._connection = manager.getConnection("jdbc:derby:;databaseName=metastore_db", "APP", "mine")
        stack.callback(self._connection.close)
        self._statement = self._connection.createStatement()

    def database_id(self, name: str) -> int:
        return self._number(f"SELECT DB_ID FROM DBS WHERE NAME = '{name}'")

    def make_numbers(self, count: int) -> None:
        assert count <= _MOST
        tables = ", ".join(f"{_DIGITS} AS T{place} (D{place})" for place in range(6))
        value = " + ".join(f"{10**place} * D{place}" for place in range(6))
        self._run("CREATE TABLE NUMBERS (N BIGINT PRIMARY KEY)")
        self._run(
            f"INSERT INTO NUMBERS SELECT * FROM (SELECT {value} AS N FROM {tables}) AS A WHERE N < {count}"
        )

    def copy_tables(self, database: int, table: str, to_database: str, *, keep_name: bool = False) -> None:
        where = f"DB_ID = {database} AND TBL_NAME = '{table}'"
        ids = {key: self._number(f"SELECT {key} FROM TBLS WHERE {where}") for key in ("TBL_ID", "SD_ID")}
        of_storage = {
            key: self._number(f"SELECT {key} FROM SDS WHERE SD_ID = {ids['SD_ID']}")
            for key in ("SERDE_ID", "CD_ID")
        }
        serde = self.copy("SERDES", "SERDE_ID", of_storage["SERDE_ID"], {})
        columns = self.copy("CDS", "CD_ID", of_storage["CD_ID"], {})
        links = {"SERDE_ID": f"{serde} + N", "CD_ID": f"{columns} + N"}
        storage = self.copy("SDS", "SD_ID", ids["SD_ID"], links)
        name = "{old}" if keep_name else "{old} || '_' || {digits}"
        place = to_database if to_database == "{old}" else f"{to_database} + N"
        changed = {"SD_ID": f"{storage} + N", "TBL_NAME": name, "DB_ID": place}
        copied = self.copy("TBLS", "TBL_ID", ids["TBL_ID"], changed)
        self._insert("TABLE_PARAMS", {"TBL_ID": f"{copied} + N"}, f"TBL_ID = {ids['TBL_ID']}")
        self._run("DROP TABLE NUMBERS")
        # All is committed: a Derby that is killed afterwards has nothing to recover.
        self._run("CALL SYSCS_UTIL.SYSCS_CHECKPOINT_DATABASE()")

    def copy(self, table: str, key: str, old: int, changed: Mapping[str, str]) -> int:
        """Copy the row with this key for each number, and return the key of the copy with number 0."""
        first = self._number(f"SELECT MAX({key}) + 1 FROM {table}")
        self._insert(table, {key: f"{first} + N", **changed}, f"{key} = {old}")
        # Where DataNucleus goes on to count.
        self._run("UPDATE SEQUENCE_TABLE SET NEXT_VAL = NEXT_VAL + (SELECT COUNT(*) FROM NUMBERS)")
        return first

    def _insert(self, table: str, changed: Mapping[str, str], where: str) -> None:
        columns = self._columns(table)
        digits = f"SUBSTR(CHAR({_MOST} + N), 2, 6)"
        values = [changed.get(name, "{old}").format(old=f'"{name}"', digits=digits) for name in columns]
        names = ", ".join(f'"{name}"' for name in columns)
        self._run(
            f"INSERT INTO {table} ({names}) SELECT {', '.join(values)} FROM {table}, NUMBERS WHERE {where}"
        )

    def _columns(self, table: str) -> list[str]:
        described = self._statement.executeQuery(f"SELECT * FROM {table} WHERE 1 = 0").getMetaData()
        return [described.getColumnName(place) for place in range(1, described.getColumnCount() + 1)]

    def _number(self, query: str) -> int:
        rows: Any = self._statement.executeQuery(query)
        assert rows.next(), query
        return int(rows.getLong(1))

    def _run(self, sql: str) -> None:
        self._statement.execute(sql)
