"""Predicates keep the same rows as in SQL."""

import datetime
from decimal import Decimal

import lance
import pyarrow as pa
import pytest
from lance import LanceDataset
from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.spark.write.files.sql_predicate import parse_predicate

ROWS = pa.table(
    {
        "n": [1, 2, 3, None],
        "price": pa.array([Decimal("0.50"), Decimal("1.50"), None, Decimal("2.00")], pa.decimal128(5, 2)),
        "name": ["it's", "b", None, "bc"],
        "day": [datetime.date(2013, 1, day) for day in (1, 2, 3, 4)],
        "at": pa.array([0, 10**6, None, 10**7], pa.timestamp("us", "UTC")),
        "good": [True, False, None, True],
        "two words": [1, 1, 1, 2],
        "back`tick": [1, 1, 1, 2],
        "row": [0, 1, 2, 3],
    }
)


@pytest.fixture(scope="module")
def rows_in_lance(tmp_path_factory: pytest.TempPathFactory) -> LanceDataset:
    # With a backtick in a column's name, Lance can't filter a dataset at all.
    return lance.write_dataset(ROWS.drop_columns("back`tick"), tmp_path_factory.mktemp("rows"))


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("n = 2", [1]),
        ("n <> 2", [0, 2]),
        ("2 <= n", [1, 2]),
        ("n > 1.5", [1, 2]),
        ("n > -1", [0, 1, 2]),
        ("n < row", []),
        ("n > row", [0, 1, 2]),
        ("price >= 1.5", [1, 3]),
        ("price < 1.501", [0, 1]),
        ("price IN (0.5, 2)", [0, 3]),
        ("price > -0.001", [0, 1, 3]),
        ("day IN ('2013-01-03', '2013-01-04')", [2, 3]),
        ("NOT (n = 1 OR name = 'b')", []),
        ("NOT (n = 3 AND name = 'b')", [0, 1, 3]),
        ("name = 'it''s'", [0]),
        ("name LIKE 'b%'", [1, 3]),
        ("name not like 'b%'", [0]),
        ("name IS NULL", [2]),
        ("name IS NOT NULL AND n IS NULL", [3]),
        ("NOT name = 'b'", [0, 3]),
        ("n IN (1, 3)", [0, 2]),
        ("n NOT IN (1, 3)", [1]),
        ("n BETWEEN 2 AND 3", [1, 2]),
        ("n NOT BETWEEN 2 AND 3", [0]),
        ("n = 1 OR n = 2 AND name = 'none'", [0]),
        ("(n = 1 OR n = 2) AND name = 'b'", [1]),
        ("day >= '2013-01-03'", [2, 3]),
        ("at > '1970-01-01T00:00:01Z'", [3]),
        ("good", [0, 3]),
        ("NOT good", [1]),
        ("good AND n = 1", [0]),
        ("good = false", [1]),
        ("`two words` = 2", [3]),
        ("`back``tick` = 2", [3]),
    ],
)
def test_a_predicate_keeps_the_same_rows_as_sql(
    rows_in_lance: LanceDataset, text: str, kept: list[int]
) -> None:
    condition = parse_predicate(text, ROWS.schema)

    assert ROWS.filter(condition.expression)["row"].to_pylist() == kept
    if "back`tick" not in condition.columns:
        assert rows_in_lance.to_table(filter=condition.lance_sql)["row"].to_pylist() == kept


def test_a_predicate_has_the_columns_it_needs() -> None:
    assert parse_predicate("n = 1 AND name = 'day'", ROWS.schema).columns == {"n", "name"}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("nobody = 1", "column nobody does not exist"),
        ("n = ", "got the end"),
        ("n", "expected a comparison after n"),
        ("n = 1 n", "unexpected 'n'"),
        ("(n = 1", r"expected \)"),
        ("n IS 1", "expected NULL, got '1'"),
        ("n = 1; DROP", "from '; DROP' on"),
        ("__import__('os')", "column __import__ does not exist"),
        ("name > 3", "greater"),
        ("day > 'yesterday'", "yesterday"),
        ("1 = 1", "a comparison must contain a column"),
        ("", "got the end"),
    ],
)
def test_a_syntax_error_is_reported_with_its_position(text: str, complaint: str) -> None:
    with pytest.raises(InvalidInputError, match=complaint):
        parse_predicate(text, ROWS.schema)
