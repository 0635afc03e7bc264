"""Values of fragments merged in the order of their rows, against plain Python."""

from collections.abc import Iterator
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from lance.file import LanceFileReader

from airflow_provider_lancens.spark.compute.column_task import (
    ColumnFileInfo,
    ColumnLayout,
    Piece,
    merged,
    padded,
    write_column,
)
from airflow_provider_lancens.spark.table.dataset_ref import DatasetRef

SIZES = st.integers(1, 7)


def pieces(values: dict[int, int], size: int) -> Iterator[Piece]:
    offsets = sorted(values)
    for start in range(0, len(offsets), size):
        block = offsets[start : start + size]
        yield np.array(block, np.int64), pa.array([values[offset] for offset in block])


@given(st.dictionaries(st.integers(0, 40), st.integers(0, 9)), st.data(), SIZES, SIZES)
def test_computed_values_replace_those_of_their_rows(
    kept: dict[int, int], data: st.DataObject, size: int, of_computed: int
) -> None:
    chosen = data.draw(st.sets(st.sampled_from(sorted(kept)))) if kept else set()
    computed = {offset: 100 + offset for offset in chosen}

    found = list(merged(pieces(kept, size), pieces(computed, of_computed)))

    values = {
        int(offset): value.as_py() for at, array in found for offset, value in zip(at, array, strict=True)
    }
    assert values == kept | computed


@given(st.dictionaries(st.integers(0, 40), st.integers(0, 9)), st.integers(0, 9), SIZES, SIZES)
def test_rows_without_values_are_null(values: dict[int, int], more: int, size: int, step: int) -> None:
    rows = max(values, default=-1) + 1 + more

    arrays = list(padded(pieces(values, size), pa.int64(), rows, step))

    assert all(len(array) <= step for array in arrays)
    assert [value.as_py() for array in arrays for value in array] == [values.get(at) for at in range(rows)]


def test_vectors_and_nested_values_are_padded_too() -> None:
    for arrow, value in ((pa.list_(pa.float32(), 2), [1.0, 2.0]), (pa.list_(pa.string()), ["a"])):
        some: Iterator[Piece] = iter([(np.array([1, 3]), pa.array([value, None], arrow))])
        array = pa.concat_arrays([*padded(some, arrow, 5, 10)])
        assert array.to_pylist() == [None, value, None, None, None]
        assert array.type == arrow


def test_structs_inside_structs_are_written_in_parts(tmp_path: Path) -> None:
    values = pa.array([{"x": {"y": number}} for number in range(10)])
    dataset = lance.write_dataset(pa.table({"s": values}), tmp_path / "t")
    some: Iterator[Piece] = iter([(np.arange(10), values)])
    parts = (pa.record_batch({"s": part}) for part in padded(some, values.type, 10, 4))

    file = write_column(DatasetRef(dataset.uri), ColumnLayout.of(dataset, "s"), parts, ColumnFileInfo)

    found = LanceFileReader(f"{tmp_path}/t/data/{file.path}").read_all().to_table()
    assert found["s"].to_pylist() == values.to_pylist()
