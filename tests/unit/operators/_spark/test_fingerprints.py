"""Fingerprints of what functions are given."""

from collections.abc import Callable
from datetime import date
from typing import Any

import pyarrow as pa
import pytest
from airflow.sdk.definitions.xcom_arg import _MapResult

from airflow_provider_lancens.operators._spark.fingerprints import fingerprint_of


def numpy_array(values: list[int]) -> Any:
    numpy = pytest.importorskip("numpy")
    return numpy.array(values)


def pandas_frame(values: list[int]) -> Any:
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame({"id": values})


def pandas_series(values: list[int]) -> Any:
    return pandas_frame(values)["id"]


def pandas_objects(values: list[int]) -> Any:
    return pandas_frame([{one: {date.min}} for one in values])  # type: ignore[misc]


def polars_frame(values: list[int]) -> Any:
    polars = pytest.importorskip("polars")
    return polars.DataFrame({"id": values})


def arrow_table(values: list[int]) -> Any:
    return pa.table({"id": values})


def xcoms_of_a_mapped_task(values: list[int]) -> Any:
    return _MapResult(values, [str])


def columns_of_one_name(values: list[int]) -> Any:
    return pa.Table.from_arrays([pa.array(values), pa.nulls(len(values))], names=["id", "id"])


def days(values: list[int]) -> Any:
    return {date.fromordinal(one + 1): {(one, "a"): None} for one in values}


def mapped_days(values: list[int]) -> Any:
    return _MapResult(values, [lambda one: days([one])])


@pytest.mark.parametrize(
    "make",
    [
        numpy_array,
        pandas_frame,
        pandas_series,
        pandas_objects,
        polars_frame,
        arrow_table,
        columns_of_one_name,
        xcoms_of_a_mapped_task,
        days,
        mapped_days,
    ],
)
def test_a_fingerprint_has_all_that_a_function_is_given(make: Callable[[list[int]], Any]) -> None:
    values = list(range(5000))
    others = [*values[:2500], 7000, *values[2501:]]

    assert fingerprint_of({"rows": make(values)}) == fingerprint_of({"rows": make(list(values))})
    assert fingerprint_of({"rows": make(values)}) != fingerprint_of({"rows": make(others)})


def test_equal_data_has_one_fingerprint_however_it_lies_in_memory() -> None:
    pandas = pytest.importorskip("pandas")
    one, other = (b"name".decode() for _ in range(2))  # two objects
    rows = pa.table({"id": pa.array([9, 1, 2, None]), "tags": pa.array([["a"], None, [], ["b"]])})
    given = [
        (pandas.DataFrame({"n": [one, one]}), pandas.DataFrame({"n": [one, other]})),
        (rows.slice(1), pa.table({"id": [1, 2, None], "tags": [None, [], ["b"]]})),
        (pa.concat_tables([rows, rows]), pa.concat_tables([rows, rows]).combine_chunks()),
        (pa.py_buffer(b"rows"), pa.py_buffer(bytearray(b"rows"))),
    ]

    for first, second in given:
        assert fingerprint_of({"rows": first}) == fingerprint_of({"rows": second})


def test_a_fingerprint_tells_keys_of_different_types_apart() -> None:
    assert fingerprint_of({"rows": {1: "a", "b": 2}}) != fingerprint_of({"rows": {"1": "a", "b": 2}})
