"""Spark's filters, applied by Lance."""
# ruff: noqa: E402 an older PySpark is sorted out before what it can't import

import datetime as dt
from decimal import Decimal

import lance
import pyarrow as pa
import pytest

from tests.pyspark_versions import need_data_sources

need_data_sources()

from pyspark.sql import datasource as spark

from airflow_provider_lancens.spark.datasource.source_options import condition_of

WIDE = "12345678901234567890123456789012."
"""More digits than Python's decimals are computed with by default."""
ROWS = pa.table(
    {
        "n": pa.array([1, 2, 3, None], pa.int64()),
        "say `it`": pa.array([1, 2, 3, 4], pa.int64()),
        "Text": ["a", "it's", "", None],
        "yes": [True, False, None, True],
        "day": [dt.date(1969, 12, 31), dt.date(2020, 2, 29), None, dt.date(1, 1, 1)],
        "x": [0.5, float("nan"), None, 1.0],
        "price": pa.array([Decimal("1.50"), None, None, None], pa.decimal128(10, 2)),
        "wide": pa.array([Decimal(WIDE + digit) for digit in "4567"], pa.decimal128(38, 1)),
        "inner": [{"n": 1}] * 4,
        "tiny": pa.array([-127, -1, 0, 127], pa.int8()),
        "unsigned": pa.array([0, 1, 2, 255], pa.uint8()),
        "instant": pa.array([0, 0, 0, 0], pa.date64()),
    }
)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> lance.LanceDataset:
    return lance.write_dataset(ROWS, tmp_path_factory.mktemp("filters"))


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        (spark.EqualTo(("n",), 2), [1]),
        (spark.GreaterThan(("n",), 1), [1, 2]),
        (spark.GreaterThanOrEqual(("n",), -(2**63) + 1), [0, 1, 2]),
        (spark.LessThan(("n",), 2**63 - 1), [0, 1, 2]),
        (spark.LessThanOrEqual(("n",), 2), [0, 1]),
        (spark.In(("n",), (1, 3)), [0, 2]),
        (spark.Not(spark.In(("n",), (1, 3))), [1]),
        (spark.Not(spark.EqualTo(("n",), 2)), [0, 2]),
        (spark.IsNull(("n",)), [3]),
        (spark.LessThan(("tiny",), 127), [0, 1, 2]),
        (spark.GreaterThan(("tiny",), -127), [1, 2, 3]),
        (spark.IsNotNull(("n",)), [0, 1, 2]),
        (spark.Not(spark.IsNull(("inner",))), [0, 1, 2, 3]),
        (spark.EqualTo(("Text",), "it's"), [1]),
        (spark.GreaterThan(("Text",), "a"), [1]),
        (spark.EqualTo(("yes",), True), [0, 3]),
        (spark.Not(spark.EqualTo(("yes",), True)), [1]),
        (spark.LessThan(("day",), dt.date(1970, 1, 1)), [0, 3]),
        (spark.EqualTo(("n",), -(2**63)), []),
        (spark.EqualTo(("x",), 0.5), [0]),
        (spark.Not(spark.EqualTo(("x",), 0.5)), [1, 3]),
        (spark.GreaterThan(("x",), 0.5), [1, 3]),  # NaN is the greatest
        (spark.EqualTo(("price",), Decimal("1.50")), [0]),
        (spark.EqualTo(("wide",), Decimal(f"{WIDE}5")), [1]),
        (spark.GreaterThan(("wide",), Decimal(f"{WIDE}5")), [2, 3]),
        (spark.EqualTo(("inner", "n"), 1), [0, 1, 2, 3]),
        (spark.StringStartsWith(("Text",), "it"), [1]),
        (spark.Not(spark.StringContains(("Text",), "t'")), [0, 2]),
        (spark.In(("day",), (dt.date(2020, 2, 29),)), [1]),
    ],
    ids=str,
)
def test_lance_filters_like_spark(
    dataset: lance.LanceDataset, condition: spark.Filter, rows: list[int]
) -> None:
    pushed = condition_of(condition, ROWS.schema)

    assert pushed is not None
    found = dataset.scanner(columns=[], filter=pushed.lance_sql, with_row_id=True).to_table()
    assert found["_rowid"].to_pylist() == rows


@pytest.mark.parametrize(
    "condition",
    [
        spark.EqualTo(("gone",), 1),
        spark.EqualTo(("say `it`",), 1),
        spark.EqualTo(("n",), None),
        spark.EqualTo(("n",), True),
        spark.EqualNullSafe(("n",), 1),
        spark.LessThan(("tiny",), 128),
        spark.GreaterThan(("unsigned",), -1),
        spark.EqualTo(("instant",), dt.date(1970, 1, 1)),
        spark.In(("n",), (1, None)),
        spark.In(("n",), ()),
        spark.GreaterThan(("day",), dt.datetime(2020, 1, 1)),  # noqa: DTZ001 as Spark has it
        spark.EqualTo(("inner", "gone"), 1),
        spark.EqualTo(("price",), Decimal("1.505")),
    ],
    ids=str,
)
def test_filters_with_another_meaning_in_lance_are_left_to_spark(condition: spark.Filter) -> None:
    assert condition_of(condition, ROWS.schema) is None
