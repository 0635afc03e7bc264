"""What a query may be, and which tables it names: by the parser of the engine that runs it."""

from collections.abc import Iterator

import duckdb
import pytest
from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.sql.query import Query


@pytest.fixture(scope="module")
def parser() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(":memory:") as connection:
        yield connection


@pytest.mark.parametrize(
    ("text", "tables"),
    [
        ("SELECT 1", []),
        ("-- a comment\nSELECT /* another; one */ ';' FROM shop.orders;", [("shop", "orders")]),
        ("WITH a AS (SELECT * FROM shop.a) SELECT * FROM a, B.c", [("shop", "a"), ("a",), ("B", "c")]),
        ('SELECT * FROM "shop$orders@12"', [("shop$orders@12",)]),
        ("SELECT (SELECT max(x) FROM h.b.t), 2 IN (SELECT y FROM b.c)", [("b", "c"), ("h", "b", "t")]),
        ("SELECT 1 FROM a.b UNION ALL SELECT 2 FROM a.b", [("a", "b")]),
        ("FROM a.b SELECT x", [("a", "b")]),
        ("VALUES (1)", []),
        ("SELECT * FROM '/etc/passwd'", [("/etc/passwd",)]),
        ("SELECT * FROM range(3), a.b", [("a", "b")]),
        ("SELECT count(*) FROM a.b WHERE x = ? AND y = ?", [("a", "b")]),
        ("SELECT count(*) FROM a.b WHERE x = $x", [("a", "b")]),
    ],
)  # fmt: skip
def test_a_query_names_its_tables(
    parser: duckdb.DuckDBPyConnection, text: str, tables: list[tuple[str, ...]]
) -> None:
    assert sorted(Query.parse(parser, text).tables) == sorted(tables)


@pytest.mark.parametrize(
    "text",
    [
        "DELETE FROM shop.orders",
        "INSERT INTO shop.orders VALUES (1)",
        "WITH a AS (SELECT 1) INSERT INTO shop.orders SELECT * FROM a",
        "UPDATE shop.orders SET x = 1",
        "CREATE TABLE t AS SELECT 1",
        "DROP TABLE shop.orders",
        "COPY (SELECT 1) TO '/tmp/a.csv'",
        "COPY shop.orders FROM '/etc/passwd'",
        "EXPORT DATABASE '/tmp/a'",
        "IMPORT DATABASE '/tmp/a'",
        "ATTACH '/tmp/a.db' AS a",
        "SET memory_limit = '1TB'",
        "PRAGMA version",
        "CALL pragma_version()",
        "INSTALL httpfs",
        "LOAD httpfs",
        "EXPLAIN ANALYZE SELECT 1",
        "PREPARE a AS SELECT 1",
        "EXECUTE a",
        "BEGIN TRANSACTION",
        "VACUUM",
        "CREATE SECRET (TYPE s3)",
        "SELECT 1; SELECT 2",
        "SELECT 1; DROP TABLE shop.orders",
        "DESCRIBE shop.orders",
        "SHOW TABLES",
        "SUMMARIZE shop.orders",
        ";",
        "-- nothing",
    ],
)
def test_only_one_query_is_accepted(parser: duckdb.DuckDBPyConnection, text: str) -> None:
    with pytest.raises(InvalidInputError, match="a query is one SELECT, which may begin with WITH"):
        Query.parse(parser, text)


@pytest.mark.parametrize("text", ["", "  ", None, 5, ["SELECT 1"]])
def test_what_is_no_text_is_refused(parser: duckdb.DuckDBPyConnection, text: object) -> None:
    with pytest.raises(InvalidInputError, match="sql: expected a query"):
        Query.parse(parser, text)


def test_a_mistake_is_shown_with_its_place(parser: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(InvalidInputError, match=r'syntax error at or near "FORM".*at \'FORM shop.orders\''):
        Query.parse(parser, "SELECT x y FORM shop.orders")


@pytest.mark.parametrize(
    "function",
    [
        "read_csv('/etc/passwd')",
        "read_text('/etc/passwd')",
        "READ_BLOB('/etc/passwd')",
        "parquet_scan('a')",
        "glob('/etc/*')",
        "arrow_scan(1, 2, 3)",
        "pandas_scan(1)",
        "query('SELECT 1')",
        "query_table('a')",
        "duckdb_settings()",
        "duckdb_secrets()",
        "json_execute_serialized_sql('{}')",
        "sqlite_scan('a', 'b')",
    ],
)
def test_functions_that_read_something_else_are_refused(
    parser: duckdb.DuckDBPyConnection, function: str
) -> None:
    for text in (f"SELECT * FROM {function}", f"SELECT (SELECT count(*) FROM {function})"):
        with pytest.raises(InvalidInputError, match=r"function '.*' isn't allowed in FROM"):
            Query.parse(parser, text)


CHECKS = """SELECT col_name, check_type, check_result FROM (
    SELECT 'a' AS col_name, 'min' AS check_type, r AS check_result FROM (SELECT MIN(a) AS r FROM t) AS sq
    UNION ALL
    SELECT 'b' AS col_name, 'max' AS check_type, r AS check_result FROM (SELECT MAX(b) AS r FROM t WHERE c = 'x') AS sq
    UNION ALL
    SELECT 'c' AS col_name, 'null_check' AS check_type, r AS check_result FROM (SELECT 1 AS r) AS sq
) AS check_columns{}"""  # noqa: E501 as the operator writes it


def test_the_checks_of_columns_are_queries_of_their_own(parser: duckdb.DuckDBPyConnection) -> None:
    query = Query.parse(parser, CHECKS.format(""))

    assert query.tables == (("t",),)
    assert [branch.count("SELECT") for branch in query.branches] == [2, 2, 2]
    assert all(f"min({column})" in branch for column, branch in zip("a", query.branches, strict=False))


@pytest.mark.parametrize(
    "text",
    [
        CHECKS.format(" ORDER BY 1"),
        CHECKS.format(" LIMIT 1"),
        CHECKS.format(" WHERE check_result > 0"),
        CHECKS.format("").replace("UNION ALL", "UNION"),
        CHECKS.format("").replace("SELECT col_name, ", "SELECT DISTINCT col_name, "),
        "SELECT 1 UNION ALL SELECT 2",
    ],
)
def test_other_queries_are_run_as_they_are(parser: duckdb.DuckDBPyConnection, text: str) -> None:
    assert Query.parse(parser, text).branches == (text,)
