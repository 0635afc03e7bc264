"""Rows that are written by calls that overlap."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.fragment import write_fragments

from airflow_provider_lancens.spark.write import write_task
from airflow_provider_lancens.spark.write.write_task import write_overlapping

SCHEMA = pa.schema({"n": pa.int64()})


@pytest.fixture(autouse=True)
def calls_of_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_task, "_ROWS_OF_A_CALL", 40)


def batches(rows: int, size: int = 15) -> Iterator[pa.RecordBatch]:
    for start in range(0, rows, size):
        yield pa.record_batch([pa.array(range(start, min(rows, start + size)), pa.int64())], schema=SCHEMA)


def rows_of(reader: pa.RecordBatchReader) -> list[int]:
    values: list[int] = reader.read_all()["n"].to_pylist()
    return values


@pytest.mark.parametrize("rows", [0, 1, 39, 40, 41, 80, 100])
def test_each_row_is_written_once_and_in_order(rows: int) -> None:
    written: list[Any] = write_overlapping(lambda reader: [rows_of(reader)], batches(rows), SCHEMA, 20)

    assert [n for fragment in written for n in fragment] == list(range(rows))
    assert all(len(fragment) == 40 for fragment in written[:-1])


def test_lance_s_files_have_the_rows_that_were_asked_for(tmp_path: Path) -> None:
    def write(reader: pa.RecordBatchReader) -> list[Any]:
        return list(write_fragments(reader, tmp_path / "t", mode="overwrite", max_rows_per_file=30))

    fragments = write_overlapping(write, batches(100), SCHEMA, 30)

    assert [fragment.physical_rows for fragment in fragments] == [30, 30, 30, 10]


def test_batches_with_structs_inside_structs_are_divided(tmp_path: Path) -> None:
    rows = pa.table({"s": [{"x": {"y": number}} for number in range(100)]})

    def write(reader: pa.RecordBatchReader) -> list[Any]:
        return list(write_fragments(reader, tmp_path / "t", mode="overwrite", max_rows_per_file=40))

    fragments = write_overlapping(write, iter(rows.to_batches()), rows.schema, 40)

    dataset = lance.LanceDataset.commit(
        tmp_path / "t", lance.LanceOperation.Overwrite(rows.schema, fragments)
    )
    assert dataset.to_table() == rows


def test_the_next_file_is_filled_while_one_is_finished() -> None:
    second_is_filled = threading.Event()

    def write(reader: pa.RecordBatchReader) -> list[Any]:
        # As Lance does, take a full file's rows and no more before it is uploaded.
        first = reader.read_next_batch()["n"][0].as_py()
        if first == 0:
            taken = 15
            while taken < 40:
                taken += reader.read_next_batch().num_rows
            assert second_is_filled.wait(10)
        else:
            second_is_filled.set()
            reader.read_all()
        return [first]

    assert write_overlapping(write, batches(80), SCHEMA, 40) == [0, 40]


def test_no_more_than_two_files_are_written_at_once() -> None:
    running, peak, lock = 0, 0, threading.Lock()

    def write(reader: pa.RecordBatchReader) -> list[Any]:
        nonlocal running, peak
        with lock:
            running += 1
            peak = max(peak, running)
        rows = rows_of(reader)
        with lock:
            running -= 1
        return rows

    write_overlapping(write, batches(1000), SCHEMA, 40)

    assert peak <= write_task.AT_ONCE


def test_a_failed_file_ends_the_others_with_its_error() -> None:
    first_failed = threading.Event()
    taken: list[int] = []

    def source() -> Iterator[pa.RecordBatch]:
        for batch in batches(400):
            taken.append(batch.num_rows)
            if sum(taken) > 60:
                assert first_failed.wait(10)
            yield batch

    def write(reader: pa.RecordBatchReader) -> list[Any]:
        if reader.read_next_batch()["n"][0].as_py() == 0:
            reader.read_next_batch(), reader.read_next_batch()
            threading.Timer(0.1, first_failed.set).start()
            raise OSError("the storage is full")
        return rows_of(reader)

    with pytest.raises(OSError, match="the storage is full"):
        write_overlapping(write, source(), SCHEMA, 40)

    assert sum(taken) < 200


def test_an_error_of_the_rows_is_raised() -> None:
    def source() -> Iterator[pa.RecordBatch]:
        yield from batches(50)
        raise ValueError("file a: its content is invalid")

    with pytest.raises(ValueError, match="file a"):
        write_overlapping(lambda reader: [rows_of(reader)], source(), SCHEMA, 40)
