"""Rows of an upsert that say what is done with them: deletions, and columns that rows of the table keep."""

import datetime as dt
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from airflow_provider_lancens.namespace.row_errors import RowError
from airflow_provider_lancens.spark.table.dataset_ref import DatasetRef
from airflow_provider_lancens.spark.write.upsert_task import (
    DELETED,
    POSITION,
    DeletedKeys,
    KeptColumns,
    decoded_keys,
    with_kept_columns,
)

NANOS = pa.array([1_700_000_000_123_456_789, 1, None], pa.timestamp("ns"))
STORED = pa.table(
    {
        "id": [1, 2, 3],
        "price": [1.0, 2.0, 3.0],
        "at": NANOS,
        "small": pa.array([7, 8, 9], pa.uint8()),
        "time": pa.array([dt.time(1), dt.time(2), None], pa.time64("us")),
        "kind": pa.array(["a", "b", "a"]).dictionary_encode(),
        "nested": [{"l": [1]}, None, {"l": []}],
        "big": pa.nulls(3, pa.decimal256(50, 2)),
    }
)


def completed(location: Path, rows: pa.RecordBatch, schema: pa.Schema | None = None) -> pa.Table:
    """The rows with the columns that an update of `price` keeps."""
    dataset = lance.dataset(location)
    names = [name for name in dataset.schema.names if name not in ("id", "price")]
    kept = KeptColumns(names, DatasetRef(str(location)), dataset.version, rows_at_once=2)
    wanted = schema or dataset.schema
    return pa.Table.from_batches(with_kept_columns(iter([rows]), wanted, None, kept), wanted)


def batch(**columns: Any) -> pa.RecordBatch:
    positions = pa.array(columns.pop("positions"), pa.int64())
    return pa.record_batch({**columns, POSITION: positions})


def test_columns_that_are_kept_have_the_bits_of_the_table(tmp_path: Path) -> None:
    lance.write_dataset(STORED, tmp_path, max_rows_per_file=2)
    lance.dataset(tmp_path).delete("id = 2")  # position 1 is now the third row

    rows = completed(tmp_path, batch(id=[3, 9, 1], price=[30.0, 90.0, 10.0], positions=[1, None, 0]))

    assert rows["id"].to_pylist() == [3, 9, 1]
    assert rows["price"].to_pylist() == [30.0, 90.0, 10.0]
    assert rows["at"].cast(pa.int64()).to_pylist() == [None, None, 1_700_000_000_123_456_789]
    for name in ("small", "time", "kind", "nested"):
        stored = STORED[name].to_pylist()
        assert rows[name].to_pylist() == [stored[2], None, stored[0]], name


def test_new_rows_have_their_own_values(tmp_path: Path) -> None:
    lance.write_dataset(STORED.select(["id", "price", "kind"]), tmp_path)

    rows = completed(
        tmp_path, batch(id=[9, 2], price=[90.0, 20.0], kind=["new", "ignored"], positions=[None, 1])
    )

    assert rows["kind"].to_pylist() == ["new", "b"]


def test_a_new_row_needs_the_columns_that_allow_no_null(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("price", pa.float64()), STRICT])
    lance.write_dataset(pa.table({"id": [1], "price": [1.0], "x": ["a"]}, schema=schema), tmp_path)

    assert completed(tmp_path, batch(id=[1], price=[2.0], positions=[0]))["x"].to_pylist() == ["a"]
    with pytest.raises(RowError, match="row 1, column x: the table does not allow nulls"):
        completed(tmp_path, batch(id=[2], price=[2.0], positions=[None]))


STRICT = pa.field("x", pa.string(), nullable=False)


def test_deletions_are_told_from_rows_to_write() -> None:
    keys = pa.schema([("id", pa.int64())])
    rows = pa.record_batch(
        {"v": list("abc"), "id": pa.array([1, 2, 3], pa.int32()), DELETED: [True, False, True]}
    )
    deleted = DeletedKeys(keys, None)

    written = list(deleted.split(iter([rows, rows.filter(rows[DELETED])])))

    assert [one.column("id").to_pylist() for one in written] == [[2]]
    encoded = deleted.encoded()
    assert encoded is not None
    assert decoded_keys([encoded], keys)["id"].to_pylist() == [1, 3, 1, 3]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_keys_to_delete_are_decoded_as_lance_takes_decimals(tmp_path: Path, count: int) -> None:
    keys = pa.schema([("shop", pa.int64()), ("amount", pa.decimal128(21, 2))])
    numbers = range(1, count + 1)
    rows = pa.record_batch([pa.array(numbers), pa.array(numbers).cast(pa.decimal128(21, 2))], schema=keys)
    deleted = DeletedKeys(keys, None)
    assert not list(deleted.split(iter([rows.append_column(DELETED, pa.array([True] * count))])))
    stored = lance.write_dataset(pa.table(rows), tmp_path)

    decoded = decoded_keys([deleted.encoded() or b""], keys)

    stored.merge_insert(keys.names).when_matched_delete().execute(decoded)  # panics on unaligned memory
    assert decoded == pa.table(rows)
    assert stored.count_rows() == 0
