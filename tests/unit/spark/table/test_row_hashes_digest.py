"""Digests of rows: the same in any order and any division, and another one for any other value."""

import copy
import random
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_lancens.spark.table.row_hashes import RowDigest, combined_digest

SCHEMA = pa.schema(
    [
        ("number", pa.int16()),
        ("text", pa.string()),
        ("bytes", pa.binary()),
        ("share", pa.float32()),
        ("day", pa.date32()),
        ("time", pa.timestamp("us", "UTC")),
        ("price", pa.decimal128(10, 2)),
        ("vector", pa.list_(pa.float32())),
        ("counts", pa.map_(pa.string(), pa.int64())),
        ("nested", pa.struct([("x", pa.int8()), ("words", pa.list_(pa.string()))])),
        ("flag", pa.bool_()),
        ("nothing", pa.null()),
    ]
)
FULL = {
    "number": 1,
    "text": "a",
    "bytes": b"\x00",
    "share": 1.5,
    "day": date(2026, 1, 1),
    "time": datetime(2026, 1, 1, tzinfo=UTC),
    "price": Decimal("1.50"),
    "vector": [1.0, 2.0],
    "counts": [("a", 1), ("b", 2)],
    "nested": {"x": 1, "words": [None, "z"]},
    "flag": True,
    "nothing": None,
}
EMPTY = {
    "number": 0,
    "text": "",
    "bytes": b"",
    "share": 0.0,
    "day": date(1970, 1, 1),
    "time": datetime(1970, 1, 1, tzinfo=UTC),
    "price": Decimal("0.00"),
    "vector": [],
    "counts": [],
    "nested": {"x": None, "words": []},
    "flag": False,
    "nothing": None,
}
ROWS = [FULL, EMPTY, dict.fromkeys(FULL), FULL]


def digest(rows: list[dict[str, Any]], *sizes: int) -> str:
    """Digest rows in batches of these sizes; by default in one."""
    digests, start = [], 0
    whole = pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
    for size in sizes or (len(rows),):
        digest = RowDigest()
        digest.add(whole.slice(start, size))
        digests.append(digest.value)
        start += size
    return combined_digest(digests)


def test_order_and_division_do_not_matter() -> None:
    expected = digest(ROWS)
    shuffled = list(ROWS)
    random.Random(1).shuffle(shuffled)
    assert {digest(shuffled), digest(ROWS, 1, 2, 1), digest(ROWS, 2, 0, 2), digest(ROWS[::-1], 3, 1)} == {
        expected
    }


@pytest.mark.parametrize(
    ("column", "value"),
    [
        *((column, None) for column, value in FULL.items() if value is not None),
        *((column, EMPTY[column]) for column, value in FULL.items() if value is not None),
        ("text", "A"),
        ("vector", [2.0, 1.0]),
        ("vector", [1.0, None]),
        ("counts", [("a", 2), ("b", 1)]),
        ("counts", [("a", 1)]),
        ("nested", {"x": 1, "words": ["z", None]}),
        ("nested", {"x": 1, "words": None}),
    ],
)
def test_another_value_gives_another_digest(column: str, value: object) -> None:
    changed = copy.deepcopy(ROWS)
    changed[0][column] = value
    assert digest(changed) != digest(ROWS)


def test_null_and_empty_differ() -> None:
    rows: list[dict[str, Any]] = [EMPTY, dict.fromkeys(EMPTY)]
    digests = {digest([{**EMPTY, column: row[column]}]) for column in EMPTY for row in rows}
    assert len(digests) == len(EMPTY)  # that without a null, and one for each other column


def test_a_row_that_is_there_twice_counts_twice() -> None:
    assert digest([FULL]) != digest([FULL, FULL])
    assert digest([FULL, FULL, EMPTY]) != digest([FULL, EMPTY, EMPTY])


def test_further_columns_of_nulls_do_not_matter_but_their_values_do() -> None:
    rows, schema = ROWS, SCHEMA.append(pa.field("new", pa.int32()))
    digests = []
    for values in ([None] * len(rows), [None, 1, None, None]):
        digest = RowDigest()
        columns = [*pa.RecordBatch.from_pylist(rows, SCHEMA).columns, pa.array(values, pa.int32())]
        digest.add(pa.RecordBatch.from_arrays(columns, schema=schema))
        digests.append(combined_digest([digest.value]))
    whole = RowDigest()
    whole.add(pa.RecordBatch.from_pylist(rows, SCHEMA))

    assert digests[0] == combined_digest([whole.value])
    assert digests[1] != digests[0]


def test_rows_of_nulls_are_counted() -> None:
    nulls = dict.fromkeys(FULL)
    assert len({digest([nulls] * count) for count in range(4)}) == 4
