"""Conditions keep the rows that SQL would keep."""

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.spark.files.conditions import parse_condition

ROWS = pa.table(
    {
        "n": [1, 2, 3, None],
        "price": pa.array([Decimal("0.50"), Decimal("1.50"), None, Decimal("2.00")], pa.decimal128(5, 2)),
        "name": ["it's", "b", None, "bc"],
        "day": [datetime.date(2013, 1, day) for day in (1, 2, 3, 4)],
        "at": pa.array([0, 10**6, None, 10**7], pa.timestamp("us", "UTC")),
        "good": [True, False, None, True],
        "two words": [1, 1, 1, 2],
        "row": [0, 1, 2, 3],
    }
)


@pytest.mark.parametrize(
    ("words", "kept"),
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
    ],
)
def test_the_rows_that_sql_keeps_are_kept(words: str, kept: list[int]) -> None:
    condition = parse_condition(words, ROWS.schema)

    assert ROWS.filter(condition.expression)["row"].to_pylist() == kept


def test_it_tells_the_columns_that_it_needs() -> None:
    assert parse_condition("n = 1 AND name = 'day'", ROWS.schema).columns == {"n", "name"}


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("nobody = 1", "there is no column nobody"),
        ("n = ", "its end"),
        ("n", "a comparison has to follow n"),
        ("n = 1 n", "'n' is too much"),
        ("(n = 1", r"expected \)"),
        ("n IS 1", "expected NULL, got '1'"),
        ("n = 1; DROP", "from '; DROP' on"),
        ("__import__('os')", "no column __import__"),
        ("name > 3", "greater"),
        ("day > 'yesterday'", "yesterday"),
        ("1 = 1", "two values"),
        ("", "its end"),
    ],
)
def test_what_can_not_be_understood_is_said_with_its_place(words: str, complaint: str) -> None:
    with pytest.raises(InvalidInputError, match=complaint):
        parse_condition(words, ROWS.schema)
