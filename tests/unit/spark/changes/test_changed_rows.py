"""Rows of two versions are compared by their values, whatever their types."""

import datetime as dt
import decimal
import math
import random
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_lancens.spark.changes.changed_rows import same_rows

_UTC = dt.UTC
_CHOICES: dict[pa.DataType, list[Any]] = {
    pa.int32(): [1, 2],
    pa.float64(): [1.0, math.nan],
    pa.bool_(): [True, False],
    pa.string(): ["a", "b"],
    pa.large_binary(): [b"a", b"b"],
    pa.decimal128(9, 2): [decimal.Decimal("1.00"), decimal.Decimal("1.10")],
    pa.timestamp("us", "UTC"): [dt.datetime(2026, 1, day, tzinfo=_UTC) for day in (1, 2)],
    pa.null(): [None],
}
_NESTED = [
    pa.list_(pa.int32()),
    pa.large_list(pa.list_(pa.string())),
    pa.list_(pa.float32(), 2),
    pa.map_(pa.string(), pa.list_(pa.int32())),
    pa.struct([("x", pa.int32()), ("y", pa.list_(pa.struct([("z", pa.string())])))]),
]


def value(chance: random.Random, kind: Any) -> Any:
    if chance.random() < 0.2:
        return None
    if kind in _CHOICES:
        return chance.choice(_CHOICES[kind])
    if pa.types.is_struct(kind):
        return {field.name: value(chance, field.type) for field in kind}
    if pa.types.is_map(kind):
        return [(key, value(chance, kind.item_type)) for key in "ab"[: chance.randrange(3)]]
    if pa.types.is_fixed_size_list(kind):
        return [chance.choice((1.0, 2.0)) for _ in range(kind.list_size)]
    return [value(chance, kind.value_type) for _ in range(chance.randrange(3))]


@pytest.mark.parametrize("kind", [*_CHOICES, *_NESTED], ids=str)
def test_rows_are_the_same_if_their_values_and_nulls_are(kind: pa.DataType) -> None:
    chance = random.Random(5)
    for start in range(4):
        values = [value(chance, kind) for _ in range(200)]
        others = [one if chance.random() < 0.5 else value(chance, kind) for one in values]
        one, other = (pa.table({"c": pa.array(side, kind)}).slice(start) for side in (values, others))
        expected = [repr(a) == repr(b) for a, b in zip(values[start:], others[start:], strict=True)]
        assert same_rows(one, other).tolist() == expected


def test_rows_are_the_same_only_if_each_column_is() -> None:
    one = pa.table({"a": [1, 1, 2, 2], "b": [1, 2, 1, 2]})
    other = pa.table({"a": [1, 1, 1, 1], "b": [1, 1, 1, 1]})
    assert same_rows(one, other).tolist() == [True, False, False, False]
    assert same_rows(one.slice(0, 0), other.slice(0, 0)).tolist() == []


def test_rows_in_chunks_are_compared_as_whole_columns() -> None:
    parts = [pa.array(part, pa.list_(pa.int32())) for part in ([[1]], [None, [2, 3]])]
    one = pa.table({"c": pa.chunked_array(parts)})
    assert same_rows(one, one).tolist() == [True] * 3
