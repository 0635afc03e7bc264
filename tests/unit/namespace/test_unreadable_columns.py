"""Columns that can't be dropped, since rows would be left that Lance can't read."""

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.namespace.unreadable_columns import check_values_left


@pytest.fixture
def dataset(tmp_path: Path) -> lance.LanceDataset:
    """One of two fragments, of which the first has no values of the columns that were added after it."""
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"a": [1, 2], "s": [{"x": 1, "y": 2}, None]}), uri)
    lance.dataset(uri).add_columns(pa.schema([("b", pa.int64()), ("n", pa.struct([("z", pa.int64())]))]))
    rows = pa.table({"a": [3], "s": [{"x": 3, "y": 4}], "b": [5], "n": [{"z": 6}]})
    return lance.write_dataset(rows, uri, mode="append")


@pytest.mark.parametrize("dropped", [["a"], ["b", "n"], ["a", "b", "n", "s.x"], ["s", "b"]])
def test_columns_are_dropped_if_all_rows_have_values_of_others(
    dataset: lance.LanceDataset, dropped: list[str]
) -> None:
    check_values_left(dataset, dropped, "orders")
    dataset.drop_columns(dropped)

    assert lance.dataset(dataset.uri).to_table().num_rows == 3


def test_the_last_columns_with_values_are_kept(dataset: lance.LanceDataset) -> None:
    refused = r"table orders: columns: fragment 0 has values of a, s alone, and Lance"
    with pytest.raises(InvalidInputError, match=refused):
        check_values_left(dataset, ["a", "s"], "orders")

    dataset.drop_columns(["a", "s"])  # by another client
    with pytest.raises((OSError, ValueError), match="Fragment 0 does not contain any data"):
        lance.dataset(dataset.uri).to_table()


def test_all_columns_are_left_to_lance_to_refuse(dataset: lance.LanceDataset) -> None:
    check_values_left(dataset, ["a", "s", "b", "n"], "orders")

    with pytest.raises((OSError, ValueError), match="Cannot drop all columns"):
        dataset.drop_columns(["a", "s", "b", "n"])


def test_a_table_without_rows_may_lose_any_columns(tmp_path: Path) -> None:
    dataset = lance.write_dataset(pa.table({"a": pa.array([], pa.int64())}), str(tmp_path / "t.lance"))
    dataset.add_columns(pa.schema([("b", pa.int64())]))

    check_values_left(dataset, ["a"], "orders")
