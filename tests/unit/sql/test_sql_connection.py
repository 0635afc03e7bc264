"""Queries on tables of a folder, by a connection of the DB-API."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lance_namespace.errors import (
    InvalidInputError,
    InvalidTableStateError,
    TableColumnNotFoundError,
    TableNotFoundError,
    TableTagNotFoundError,
    TableVersionNotFoundError,
    UnsupportedOperationError,
)

from airflow_provider_lancens.spark.lance_catalog import LanceCatalog
from airflow_provider_lancens.sql.pinned_tables import PinnedTables
from airflow_provider_lancens.sql.sql_connection import SqlConnection
from tests.support.repository import ROOT
from tests.support.sql_tables import ORDERS, folder_of_tables, orders

Ask = Callable[..., list[Any]]


@pytest.fixture
def lake(tmp_path: Path) -> LanceCatalog:
    """Orders in two versions, of one and of three rows, and customers."""
    lake = folder_of_tables(tmp_path, "shop")
    table = lake.declare_table("shop.orders")
    table.append(orders(1))
    table.append(orders(2, 3, first=1))
    lake.declare_table("shop.customers").append(pa.table({"name": ["c0"]}))
    return lake


@pytest.fixture
def ask(lake: LanceCatalog) -> Ask:
    """The rows of a query, through a new connection."""

    def answer(sql: str, parameters: Any = None, *, tables: Any = None, **options: Any) -> list[Any]:
        connection = SqlConnection(PinnedTables(lake, tables, options.pop("database", None)), **options)
        try:
            return connection.cursor().execute(sql, parameters).fetchall()
        finally:
            connection.close()

    return answer


@pytest.mark.parametrize(
    "name",
    [
        "shop.orders",
        "SHOP.Orders",
        '"shop"."orders"',
        '"shop.orders"',
        '"shop$orders"',
        "shop.\"orders@2\"",
        '"shop.orders@2"',
        '"shop$orders@2"',
        "newest",
        "pinned",
        "Xcom",
        "old",
    ],
)  # fmt: skip
def test_a_table_has_many_names(ask: Ask, name: str) -> None:
    tables = {
        "newest": "shop.orders",
        "pinned": "shop$orders@2",
        "xcom": {"table": "shop$orders", "version": 2},
        "old": "shop.orders@1",
    }
    assert ask(f"SELECT count(*) FROM {name}", tables=tables) == [(1 if name == "old" else 3,)]


def test_a_database_is_that_of_names_without_one(ask: Ask) -> None:
    assert ask("SELECT count(*) FROM orders", database="shop") == [(3,)]
    assert ask('SELECT count(*) FROM "orders@1"', database="shop") == [(1,)]
    with pytest.raises(TableNotFoundError, match=r"table 'orders' of the query.*written database\.table"):
        ask("SELECT count(*) FROM orders")


def test_versions_are_given_by_number_and_tag(ask: Ask, lake: LanceCatalog) -> None:
    table = lake.table("shop.orders")
    table.tag("audited", version=1)

    assert ask('SELECT count(*) FROM "shop.orders@audited"') == [(1,)]
    with pytest.raises(TableVersionNotFoundError, match="1999"):
        ask('SELECT count(*) FROM "shop.orders@1999-01-01T00:00:00Z"')
    with pytest.raises(TableTagNotFoundError, match="nothing"):
        ask('SELECT count(*) FROM "shop.orders@nothing"')
    with pytest.raises(TableVersionNotFoundError, match="has no version 99"):
        ask('SELECT count(*) FROM "shop.orders@99"')
    with pytest.raises(InvalidInputError, match="no version follows the @"):
        ask('SELECT count(*) FROM "shop.orders@"')


def test_tags_that_differ_only_in_case_are_two_versions(lake: LanceCatalog) -> None:
    table = lake.table("shop.orders")
    table.tag("Gold", version=1)
    table.tag("gold", version=2)
    cursor = SqlConnection(PinnedTables(lake)).cursor()

    counts = [
        cursor.execute(f'SELECT count(*) FROM "shop.{name}"').fetchall()
        for name in ("orders@Gold", "orders@gold", "ORDERS@Gold")
    ]
    assert counts == [[(1,)], [(3,)], [(1,)]]
    both = 'SELECT count(*) FROM "shop.orders@Gold", "shop.orders@gold"'
    with pytest.raises(InvalidInputError, match=r"'shop\.orders@gold' of the query: another .* case"):
        cursor.execute(both)


def test_a_staged_version_is_read_by_its_result_or_name(ask: Ask, lake: LanceCatalog) -> None:
    staged = lake.table("shop.orders").append(orders(-5, first=3), stage=True)

    given = {"audited": staged.as_dict()}
    assert ask("SELECT count(*), min(amount) FROM audited", tables=given) == [(4, Decimal("-5.00"))]
    assert ask(f'SELECT count(*) FROM "shop.orders@{staged.staged_version}"') == [(4,)]
    assert ask("SELECT count(*) FROM shop.orders") == [(3,)]


def test_the_result_of_a_former_table_is_refused(ask: Ask, lake: LanceCatalog) -> None:
    xcom = lake.table("shop.orders").append(orders(4, first=3)).as_dict()
    count = "SELECT count(*) FROM orders"

    assert ask(count, tables={"orders": xcom}) == [(4,)]
    with pytest.raises(InvalidTableStateError, match=r"dropped and declared again.*version 3 was returned"):
        ask(count, tables={"orders": {**xcom, "location": f"{xcom['location']}-before"}})


def test_versions_of_a_table_and_several_tables_are_joined(ask: Ask) -> None:
    sql = """
        WITH orders AS (SELECT * FROM shop.orders)
        SELECT o.id, c.name FROM orders o LEFT JOIN shop.customers c ON c.name = o.customer
        WHERE o.id NOT IN (SELECT id FROM "shop.orders@1") ORDER BY o.id
    """
    assert ask(sql) == [(1, "c0"), (2, None)]


def test_all_queries_and_names_see_one_version(lake: LanceCatalog, caplog: pytest.LogCaptureFixture) -> None:
    connection = SqlConnection(PinnedTables(lake, {"mine": "shop.orders"}))
    cursor = connection.cursor()
    counts = []
    with caplog.at_level("INFO", "airflow_provider_lancens.sql"):
        for name in ("shop.orders", '"shop$orders"', "mine"):
            counts += cursor.execute(f"SELECT count(*) FROM {name}").fetchall()
            lake.table("shop.orders").append(orders(9, first=10))
    connection.close()

    assert counts == [(3,)] * 3
    assert "SQL reads table shop$orders at version 2" in caplog.text
    assert list(map(str, connection.tables.last_read)) == ["shop$orders at version 2"]


@pytest.mark.parametrize(
    ("sql", "parameters"),
    [
        ("SELECT id FROM shop.orders WHERE id > ?", [1]),
        ("SELECT id FROM shop.orders WHERE id > $n", {"n": 1}),
    ],
)
def test_parameters_are_values(ask: Ask, sql: str, parameters: Any) -> None:
    assert ask(sql, parameters) == [(2,)]


def test_a_cursor_follows_the_db_api(lake: LanceCatalog) -> None:
    connection = SqlConnection(PinnedTables(lake))
    cursor = connection.cursor()
    assert (cursor.description, cursor.fetchone()) == (None, None)

    cursor.execute("SELECT id, amount AS price FROM shop.orders ORDER BY id")

    assert [column[0] for column in cursor.description or ()] == ["id", "price"]
    assert cursor.fetchone() == (0, Decimal("1.00"))
    assert cursor.fetchmany(5) == [(1, Decimal("2.00")), (2, Decimal("3.00"))]
    assert (cursor.fetchmany(), cursor.fetchall(), cursor.rowcount) == ([], [], -1)
    connection.commit()
    connection.rollback()
    connection.close()
    assert cursor.fetchone() is None


def test_values_of_other_types_keep_them_in_the_checks_of_columns(ask: Ask) -> None:
    check = "SELECT '{0}' AS col_name, '{1}' AS check_type, {0}_{1} AS check_result FROM (SELECT {2} AS {0}_{1} FROM shop.orders ) AS sq"  # noqa: E501 as the operator writes it
    nulls = "SUM(CASE WHEN {0} IS NULL THEN 1 ELSE 0 END)"
    checks = [("id", "null_check", nulls), ("customer", "min", "MIN({0})"), ("amount", "max", "MAX({0})")]
    united = " UNION ALL ".join(check.format(name, kind, of.format(name)) for name, kind, of in checks)

    found = ask(f"SELECT col_name, check_type, check_result FROM ({united}) AS check_columns")

    assert found == [("id", "null_check", 0), ("customer", "min", "c0"), ("amount", "max", Decimal("3.00"))]


def test_an_unknown_column_is_named_with_those_that_there_are(ask: Ask) -> None:
    for sql in ("SELECT nope FROM shop.orders", "SELECT o.nope FROM shop.orders o"):
        with pytest.raises(TableColumnNotFoundError, match=r"nope") as refused:
            ask(sql)
        assert "columns of shop$orders at version 2: id, amount, day, customer" in str(refused.value)


def test_an_unknown_table_is_named_with_those_that_are_given(ask: Ask) -> None:
    with pytest.raises(
        TableNotFoundError, match=r"table 'shop\.nope' of the query: .* in tables: mine, yours"
    ):
        ask("SELECT 1 FROM shop.nope", tables={"yours": "shop.orders", "mine": "shop.orders"})


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (None, InvalidInputError, "None"),
        ("", InvalidInputError, "table 'mine' of the query"),
        ("shop.nope", TableNotFoundError, "table 'mine' of the query"),
        ({"table": "shop$orders", "version": None}, InvalidInputError, "its version is None"),
        ({"version": 1}, InvalidInputError, "a mapping with 'table' and 'version'"),
        ("{'table': 'shop$orders', 'version': 2}", InvalidInputError, "a mapping as text; pass the output"),
        ({"table": "shop$orders", "version": 99}, TableVersionNotFoundError, "has no version 99"),
    ],
)
def test_what_is_no_table_is_never_taken_for_the_newest_version(
    ask: Ask, given: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        ask("SELECT count(*) FROM mine", tables={"mine": given})


def test_a_table_without_data_is_refused(ask: Ask, lake: LanceCatalog) -> None:
    lake.declare_table("shop.empty")
    with pytest.raises(TableVersionNotFoundError, match="nothing has been written to it yet"):
        ask("SELECT count(*) FROM shop.empty")
    lake.declare_table("shop.no_rows", schema=ORDERS)
    assert ask("SELECT count(*), max(id) FROM shop.no_rows") == [(0, None)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM '/etc/hosts.csv'",
        "SELECT * FROM \"file:///etc/passwd\"",
        "SELECT * FROM 's3://bucket/a.parquet'",
        "SELECT * FROM lake",
        "SELECT * FROM information_schema.tables",
        "SELECT * FROM temp.main.lancens_0",
        "SELECT * FROM lancens_0",
        "SELECT * FROM duckdb_settings",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM shop.orders, read_text('/etc/passwd')",
        "COPY (SELECT * FROM shop.orders) TO '{folder}/out.csv'",
        "ATTACH '{folder}/a.db' AS a",
        "SELECT 1; COPY (SELECT 1) TO '{folder}/out.csv'",
    ],
)  # fmt: skip
def test_nothing_but_tables_of_the_catalog_is_read_and_nothing_written(
    ask: Ask, sql: str, tmp_path: Path
) -> None:
    before = sorted(tmp_path.rglob("*"))

    with pytest.raises((InvalidInputError, TableNotFoundError)):
        ask(sql.format(folder=tmp_path))

    assert sorted(tmp_path.rglob("*")) == before


def test_the_database_refuses_files_also_by_itself(lake: LanceCatalog) -> None:
    """As the second line of defense, behind the parser."""
    import duckdb

    connection = SqlConnection(PinnedTables(lake))
    running = connection.cursor().execute("SELECT 1")._running
    assert running is not None
    for sql in (
        "SELECT * FROM read_text('/etc/passwd')",
        "COPY (SELECT 1) TO '/tmp/lancens-out.csv'",
        "SET memory_limit = '1TB'",
        "INSTALL httpfs",
    ):
        running._database.execute("SELECT 1").fetchall()
        with pytest.raises(duckdb.Error, match=r"disabled by configuration|has been locked"):
            running._database.execute(sql)
    connection.close()


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT CAST(customer AS INT) FROM shop.orders", "Could not convert string 'c0'"),
        ("SELECT nonsense(id) FROM shop.orders", "nonsense"),
        ("SELECT sum(customer) FROM shop.orders", "sum"),
        ("SELECT 1 FROM temp.orders", r"'temp' is a name of DuckDB's own; write the whole name in quotes"),
    ],
)
def test_what_cannot_be_evaluated_is_refused(ask: Ask, sql: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        ask(sql)


def test_a_file_that_is_lost_is_reported_as_such(ask: Ask, tmp_path: Path) -> None:
    for file in tmp_path.glob("*shop$orders/data/*.lance"):
        file.unlink()
    with pytest.raises(InvalidTableStateError):
        ask("SELECT sum(amount) FROM shop.orders")


@pytest.mark.parametrize("limit", ["many", "-1GB", "5 apples"])
def test_an_invalid_memory_limit_is_refused(ask: Ask, limit: str) -> None:
    with pytest.raises(InvalidInputError, match=f"memory_limit='{limit}'"):
        ask("SELECT 1", memory_limit=limit)


def test_a_query_that_needs_more_memory_says_what_to_set(ask: Ask) -> None:
    sql = "SELECT max(len(a)) FROM (SELECT list(i) AS a FROM range(20000000) t(i))"
    with pytest.raises(InvalidInputError, match="set a greater memory_limit in hook_params"):
        ask(sql, memory_limit="30MB")


def test_its_files_are_removed(ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))

    ask("SELECT count(*) FROM shop.orders")
    with pytest.raises(TableNotFoundError):
        ask("SELECT count(*) FROM shop.nope")

    assert list(folder.iterdir()) == []


class Overdue(BaseException):
    """What Airflow raises when the time of a task is over, and when it is killed."""


@pytest.mark.parametrize("sql", ["SELECT count(*) FROM {}", "SELECT * FROM {} WHERE a.i + b.i < -1"])
def test_a_signal_ends_a_query_at_once(ask: Ask, sql: str) -> None:
    def end(*_: object) -> None:
        raise Overdue

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    began = time.monotonic()
    try:
        with pytest.raises(Overdue):
            ask(sql.format("range(100000000) a(i), range(1000) b(i)"))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - began < 20


def test_without_duckdb_the_extra_is_named(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(UnsupportedOperationError, match=r"install the extra \[sql\]"):
        ask("SELECT 1")


MEASURED = """
import sys, resource
from airflow_provider_lancens import connect
from airflow_provider_lancens.sql.pinned_tables import PinnedTables
from airflow_provider_lancens.sql.sql_connection import SqlConnection
tables = PinnedTables(connect("dir", {"root": sys.argv[1]}))
cursor = SqlConnection(tables, memory_limit="200MB").cursor()
answers = cursor.execute("SELECT count(key) FROM shop.large").fetchall()  # what Lance needs to read them
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for sql in sys.argv[2:]:
    answers += cursor.execute(sql).fetchall()
print([value for [value] in answers], (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.slow
def test_memory_is_bounded_however_many_keys_a_table_has(tmp_path: Path) -> None:
    """Without a bound, these take 200 to 280 MB more than reading the keys."""
    count = 4_000_000
    parts = range(0, count, count // 8)
    keys = [pa.table({"key": [f"{n:>040}" for n in range(first, first + count // 8)]}) for first in parts]
    folder_of_tables(tmp_path, "shop").declare_table("shop.large").append(pa.concat_tables(keys))
    queries = [
        "SELECT count(key) - count(DISTINCT key) FROM shop.large",
        "SELECT count(*) FROM (SELECT key FROM shop.large GROUP BY key HAVING count(*) > 1)",
        "SELECT count(*) FROM shop.large a JOIN shop.large b USING (key)",
    ]

    done = subprocess.run(
        [sys.executable, "-c", MEASURED, tmp_path, *queries],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )

    answers, _, more = done.stdout.strip().rpartition(" ")
    assert answers == f"[{count}, 0, 0, {count}]"
    assert int(more) < 150
