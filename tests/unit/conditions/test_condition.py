"""Conditions and expressions: what is accepted, what it means, and what is refused where."""

import datetime
import pickle
from decimal import Decimal, localcontext
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.conditions import (
    parse_condition,
    parse_expression,
)
from airflow_provider_lancens.conditions.expressions import FUNCTIONS

ROWS = pa.table(
    {
        "n": [1, 2, 3, None],
        "price": pa.array([Decimal("0.50"), Decimal("1.50"), None, Decimal("2.00")], pa.decimal128(5, 2)),
        "name": ["it's", "b", None, "bc"],
        "day": [datetime.date(2013, 1, day) for day in (1, 2, 3, 4)],
        "at": pa.array([0, 10**6, None, 10**7], pa.timestamp("us", "UTC")),
        "paris": pa.array([0, 10**6, None, 10**7], pa.timestamp("us", "Europe/Paris")),
        "local": pa.array([0, 10**6, None, 10**7], pa.timestamp("us")),
        "p": [1.0, float("nan"), None, 3.0],
        "big": [2**24 + 1, 2**53 + 1, None, 2**62],
        "good": [True, False, None, True],
        "two words": [1, 1, 1, 2],
        "Price": [7, 8, 9, 9],
        "order": [1, 2, 3, 4],
        "inner": [{"X": 1}, {"X": 2}, None, {"X": None}],
        "list": [[1], None, [], [2]],
        "row": [0, 1, 2, 3],
    }
)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> lance.LanceDataset:
    return lance.write_dataset(ROWS, tmp_path_factory.mktemp("rows"))


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("n = 2", [1]),
        ("n == 2", [1]),
        ("n <> 2", [0, 2]),
        ("2 <= n", [1, 2]),
        ("n > 1.5", [1, 2]),
        ("n = 1.5", []),
        ("NOT n = 1.5", [0, 1, 2]),
        ("n > -1", [0, 1, 2]),
        ("n < 1e30", [0, 1, 2]),
        ("big > 16777216.5", [0, 1, 3]),
        ("big = 9007199254740993", [1]),
        ("n < row", []),
        ("n > row", [0, 1, 2]),
        ("price >= 1.5", [1, 3]),
        ("price < 1.501", [0, 1]),
        ("price IN (0.5, 2)", [0, 3]),
        ("price > -0.001", [0, 1, 3]),
        ("price < n", [0, 1]),
        ("day IN ('2013-01-03', '2013-01-04')", [2, 3]),
        ("day = DATE '2013-01-03'", [2]),
        ("NOT (n = 1 OR name = 'b')", []),
        ("NOT (n = 3 AND name = 'b')", [0, 1, 3]),
        ("name = 'it''s'", [0]),
        ("name LIKE 'b%'", [1, 3]),
        ("name not like 'b%'", [0]),
        ("length(name) = 1", [1]),
        ("contains(name, '''') OR starts_with(name, 'bc')", [0, 3]),
        ("name IS NOT NULL AND n IS NULL", [3]),
        ("n IN (1, 3)", [0, 2]),
        ("n NOT IN (1, 3)", [1]),
        ("n NOT IN (1) OR n NOT IN (2, 3)", [0, 1, 2]),
        ("NOT (n IN (1, 3) AND good AND n IN (2))", [0, 1, 2]),
        ("n BETWEEN 2 AND 3", [1, 2]),
        ("n NOT BETWEEN 2 AND 3", [0]),
        ("n = 1 OR n = 2 AND name = 'none'", [0]),
        ("(n = 1 OR n = 2) AND name = 'b'", [1]),
        ("at > '1970-01-01T00:00:01Z'", [3]),
        ("at > '1970-01-01 00:00:01'", [3]),
        ("paris > '1970-01-01 01:00:01'", [3]),
        ("paris = '1970-01-01T03:00:00+03:00'", [0]),
        ("local = '1970-01-01'", [0]),
        ("year(day) = 2013 AND day(day) < 3", [0, 1]),
        ("p > 2", [1, 3]),  # NaN is the greatest
        ("NOT (p > 2)", [0]),
        ("p = 'NaN'", [1]),
        ("good", [0, 3]),
        ("NOT good", [1]),
        ("good = false", [1]),
        ("good IS NOT TRUE", [1, 2]),
        ("`two words` = 2", [3]),
        ('"two words" = 2', [3]),
        ("Price = 7", [0]),
        ("price = 0.5", [0]),
        ("NAME = 'b'", [1]),
        ("order = 4", [3]),
        ("inner.x = 2", [1]),
        ("inner.X IS NULL", [2, 3]),
        ("list IS NULL AND TRUE", [1]),
    ],
)
def test_lance_and_arrow_keep_the_same_rows(dataset: lance.LanceDataset, text: str, kept: list[int]) -> None:
    condition = pickle.loads(pickle.dumps(parse_condition(text, ROWS.schema)))

    assert ROWS.filter(condition.mask(ROWS))["row"].to_pylist() == kept
    assert dataset.to_table(filter=condition.lance_sql)["row"].to_pylist() == kept


def test_a_condition_has_the_columns_that_it_names() -> None:
    condition = parse_condition("n = 1 AND name = 'day' AND inner.x < row", ROWS.schema)

    assert condition.columns == {"n", "name", "inner", "row"}


def test_only_true_is_known_to_match_all_rows() -> None:
    texts = ["TRUE", " (true) ", "NOT FALSE", "FALSE", "n IS NOT NULL", "TRUE OR n = 1"]

    assert [parse_condition(text, ROWS.schema).matches_all for text in texts] == [True] * 3 + [False] * 3


@pytest.mark.parametrize(
    ("text", "marked", "complaint"),
    [
        ("n > 1 adn row = 2", "adn", "unexpected 'adn'"),
        ("n > 1; AND row = 2", ";", "unexpected ';'"),
        ("n > 1) OR (row = 2", ")", r"unexpected '\)'"),
        ("n > 1 ORDER BY n LIMIT 1", "ORDER", "unexpected 'ORDER'"),
        ("n > 1 row", "row", "unexpected 'row'"),
        ("n = 1 -- AND row = 2", "--", "comments aren't allowed"),
        ("n = 1 /* AND row = 2 */", "/*", "comments aren't allowed"),
        ("n = ", "=", "incomplete after '='"),
        ("n", "n", "expected a comparison: n is int64, not boolean"),
        ("name = 'x", "'x", "a quote or a comment isn't closed"),
        ("nobody = 1", "nobody", "no column 'nobody'; there are n, price"),
        ("inner.y = 1", "inner.y", "inner has no field 'y'; there are X"),
        ("n.y = 1", "n.y", "n has no fields: it is int64"),
        ("pRICE = 1", "pRICE", "could be each of price, Price"),
        ('name = "b"', '"b"', "no column 'b'; text is written in single quotes"),
        ("name = \u2019b\u2019", "\u2019b\u2019", "text is written in straight single quotes"),
        ("lower(name) = 'b'", "lower", "no function 'lower' in conditions; there are starts_with"),
        ("at > now()", "now", "no function 'now'"),
        ("n + 1 > 2", "n + 1 > 2", "expected a column on one side"),
        ("1 = 1", "1 = 1", "expected a column on one side"),
        ("n = '1'", "'1'", "the text '1' can't be compared with n .int64.; expected a number without quotes"),
        ("name = 3", "3", "3 can't be compared with name .string.; expected text in single quotes"),
        ("day > 'yesterday'", "'yesterday'", "expected a date such as '2026-11-01'"),
        ("day = '2026-02-30'", "'2026-02-30'", "a day of the calendar"),
        ("local = '1970-01-01T00:00:00Z'", "'1970-01-01T00:00:00Z'", "since the column has no zone"),
        ("paris = '2026-10-25 02:30'", "'2026-10-25 02:30'", "Europe/Paris has this one twice or not at all"),
        ("paris = '2026-03-29 02:30'", "'2026-03-29 02:30'", "Europe/Paris has this one twice or not at all"),
        ("n = NULL", "n", "nothing equals NULL; write IS NULL"),
        ("n NOT NULL", "NULL", "unexpected 'NULL'"),
        ("n IN (1, 2,)", ")", r"unexpected '\)'"),
        ("n IN (SELECT 1)", None, "expected"),
        ("list = 1", "list", "list .list.* can't be compared; expected IS NULL"),
        ("name LIKE 'a\\b'", "'a\\b'", "expected % _ or"),
        ("name < n", None, "name .string. can't be compared with n .int64."),
        ("!good", "!", "unexpected '!'"),
        ("n[0] = 1", "[", "unexpected"),
        ("n::int = 1", ":", "unexpected ':'"),
        ("{{ x }} = 1", "{", "unexpected '{'"),
        ("(" * 50 + "n = 1" + ")" * 50, None, "nested too deeply"),
        ("n = 1" + " OR n = 2" * 120_000, None, "at most 1,000,000 characters"),
        ("", None, "expected a condition, got blank text"),
        (" -- n = 1", None, "expected a condition, got blank text"),
        (5, None, "expected a condition as text"),
    ],
)
def test_anything_else_is_refused_with_its_place(text: str, marked: str | None, complaint: str) -> None:
    with pytest.raises(InvalidInputError, match=complaint) as refused:
        parse_condition(text, ROWS.schema, "where")

    message = str(refused.value)
    assert message.startswith("where: ")
    if marked is not None:
        _, line, marks = message.splitlines()
        assert line[marks.index("^") : marks.rindex("^") + 1].startswith(marked)


def test_the_marked_line_is_that_of_the_place() -> None:
    with pytest.raises(InvalidInputError) as refused:
        parse_condition("n = 1 AND\n  nobody = 2 AND\n  n = 3", ROWS.schema)

    assert str(refused.value).splitlines()[1:] == ["    nobody = 2 AND", "    ^^^^^^"]


def test_conditions_of_many_tests_are_evaluated(dataset: lance.LanceDataset) -> None:
    text = " OR ".join(f"(row = {number} AND n > {number})" for number in range(10_000))
    condition = parse_condition(text, ROWS.schema)

    assert dataset.to_table(filter=condition.lance_sql)["row"].to_pylist() == [0, 1, 2]
    assert ROWS.filter(condition.mask(ROWS))["row"].to_pylist() == [0, 1, 2]
    assert condition.pruning() is None


def test_the_deepest_condition_is_one_that_lance_parses(dataset: lance.LanceDataset) -> None:
    text = "p > 2"
    for level in range(14):
        text = f"({text}) {'OR' if level % 2 else 'AND'} NOT p = 0"

    assert dataset.to_table(filter=parse_condition(text, ROWS.schema).lance_sql).num_rows
    with pytest.raises(InvalidInputError, match="nested too deeply"):
        parse_condition(
            f"(({text}) OR p = 1) AND p = 2 OR p = 3 AND (p = 1 OR (({text}) AND p = 4))", ROWS.schema
        )


def test_a_comparison_uses_a_scalar_index(tmp_path: Path) -> None:
    table = pa.table(
        {"at": pa.array(range(100), pa.timestamp("us", "UTC")), "x": [i / 2 for i in range(100)]}
    )
    dataset = lance.write_dataset(table, tmp_path)
    for name, text, found in [("at", "at = '1970-01-01T00:00:00.000007Z'", 1), ("x", "x > 48", 3)]:
        dataset.create_scalar_index(name, "BTREE")
        scanner = dataset.scanner(filter=parse_condition(text, table.schema).lance_sql)
        assert "ScalarIndexQuery" in scanner.explain_plan()
        assert scanner.count_rows() == found


@pytest.mark.parametrize("digits", [5, 28])
@pytest.mark.parametrize("sign", ["", "-"])
def test_a_decimal_is_compared_with_all_of_its_digits(tmp_path: Path, digits: int, sign: str) -> None:
    values = [Decimal(f"{sign}12345678901234567890123456789012.{digit}") for digit in (4, 5, 6)]
    table = pa.table({"d": pa.array(values, pa.decimal128(38, 1))})
    dataset = lance.write_dataset(table, tmp_path)

    with localcontext(prec=digits):
        condition = parse_condition(f"d = {values[1]}", table.schema)

    assert condition.mask(table.to_batches()[0]).to_pylist() == [False, True, False]
    assert dataset.to_table(filter=condition.lance_sql)["d"].to_pylist() == values[1:2]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("n * 2 + order", [3, 6, 9, None]),
        ("n - 1 - 1", [-1, 0, 1, None]),
        ("n - (1 - 1)", [1, 2, 3, None]),
        ("coalesce(n, 0) % 2 = 1", [True, False, True, False]),
        ("upper(name) || '!'", ["IT'S!", "B!", None, "BC!"]),
        ("trim(concat(' ', name, ' '))", ["it's", "b", "", "bc"]),
        ("CAST(n AS string)", ["1", "2", "3", None]),
        ("cast(n as decimal(5, 1)) IS NOT NULL", [True, True, True, False]),
        ("date '2026-01-01'", [datetime.date(2026, 1, 1)] * 4),
        ("inner.x", [1, 2, None, None]),
        ("'it''s'", ["it's"] * 4),
        ("-n", [-1, -2, -3, None]),
    ],
)
def test_expressions_are_computed_by_lance(tmp_path: Path, text: str, value: list[object]) -> None:
    dataset = lance.write_dataset(ROWS, tmp_path)

    dataset.add_columns({"new": parse_expression(text, ROWS.schema, "expressions")})

    assert dataset.to_table()["new"].to_pylist() == value


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("n + 1 -- comment", "comments aren't allowed"),
        ("n + 1; n", "unexpected ';'"),
        ("n adn row", "unexpected 'adn'"),
        ("nobody + 1", "no column 'nobody'"),
        ("nothing(n)", "no function 'nothing' in expressions"),
        ("random()", "no function 'random'"),
        ("n OVER ()", "unexpected 'OVER'"),
        ("CAST(n AS varchar)", "CAST: expected one of bigint"),
        ("(SELECT 1)", "expected"),
        ("", "expected an expression, got blank text"),
    ],
)
def test_other_expressions_are_refused(text: str, complaint: str) -> None:
    with pytest.raises(InvalidInputError, match=complaint):
        parse_expression(text, ROWS.schema, "expressions")


def test_lance_has_the_functions_of_expressions() -> None:
    dataset = lance.write_dataset(pa.table({"n": [1]}), "memory://")
    unknown = []
    for name in FUNCTIONS:
        try:
            dataset.scanner(columns={"new": f"`{name}`({', '.join(['n'] * 9)})"}).explain_plan()
        except (ValueError, OSError) as error:  # for its arguments, not its name
            unknown += [name] if "Invalid function" in str(error) else []

    assert not unknown
