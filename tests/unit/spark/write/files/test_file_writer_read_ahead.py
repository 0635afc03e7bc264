"""Batches that a thread reads ahead."""

import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest

from airflow_provider_lancens.spark.write.files.file_writer import read_ahead


def batch(number: int, rows: int = 10) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array([number] * rows, pa.int64())})


def numbers(batches: Iterator[pa.RecordBatch]) -> list[int]:
    return [one["n"][0].as_py() for one in batches]


def test_all_batches_are_yielded_in_their_order() -> None:
    assert numbers(read_ahead(batch(n) for n in range(100))) == list(range(100))


def test_batches_are_read_while_earlier_ones_are_worked_on() -> None:
    second_was_read = threading.Event()

    def source() -> Iterator[pa.RecordBatch]:
        yield batch(0)
        second_was_read.set()
        yield batch(1)

    ahead = read_ahead(source())

    next(ahead)
    assert second_was_read.wait(10)
    assert numbers(ahead) == [1]


def test_no_more_bytes_than_allowed_wait() -> None:
    read: list[int] = []

    def source() -> Iterator[pa.RecordBatch]:
        for number in range(20):
            read.append(number)
            yield batch(number)

    for taken, _ in enumerate(read_ahead(source(), most=2 * batch(0).nbytes)):
        # The one that was taken, two that wait, and one that is to be added.
        assert len(read) <= taken + 4


def test_a_batch_above_the_bound_is_read() -> None:
    assert numbers(read_ahead((batch(n, rows=1000) for n in range(3)), most=1)) == [0, 1, 2]


def test_an_error_of_the_source_is_raised_after_the_batches_before_it() -> None:
    def source() -> Iterator[pa.RecordBatch]:
        yield batch(0)
        raise ValueError("file a: its content is invalid")

    ahead = read_ahead(source())

    next(ahead)
    with pytest.raises(ValueError, match="file a"):
        next(ahead)


def test_a_closed_reader_stops_reading() -> None:
    read: list[int] = []
    ahead = read_ahead((read.append(n) or batch(n) for n in range(1000)), most=1)  # type: ignore[func-returns-value]

    next(ahead)
    ahead.close()

    assert len(read) <= 4
    assert not any(thread.name == "lance-read-ahead" for thread in threading.enumerate())
