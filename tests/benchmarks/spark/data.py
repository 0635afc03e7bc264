"""Data to compare ways to write: rows of an order system, and vectors."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

_BLOCK = 250_000
_WORDS = np.array(["deliver", "in", "person", "none", "collect", "take", "back", "return", "mail", "ship"])
_SECONDS_OF_YEARS = 7 * 365 * 86_400


def lineitem(folder: Path, rows: int, *, as_spark: bool = False) -> Path:
    """16 columns of numbers, decimals, dates and text, in Parquet.

    Args:
        folder: where to write them.
        rows: the number of rows.
        as_spark: whether decimals are stored as integers, as Spark's writer does it, instead of as bytes, as
            pyarrow's does.
    """
    return _written(folder / "lineitem", rows, _BLOCK, _items, decimals_as_integers=as_spark)


def vectors(folder: Path, rows: int, dimension: int = 768) -> Path:
    """An id and a vector of 32-bit floats."""

    def block(random: np.random.Generator, start: int, count: int) -> pa.Table:
        values = pa.array(random.random(count * dimension, np.float32))
        offsets = pa.array(np.arange(count + 1, dtype=np.int32) * dimension)
        embedding = pa.ListArray.from_arrays(offsets, values)
        return pa.table({"id": np.arange(start, start + count), "embedding": embedding})

    return _written(folder / "vectors", rows, _BLOCK // 25, block)


def wide(folder: Path, rows: int, columns: int) -> Path:
    """As many columns as asked for, by turns whole numbers, floats and text."""

    def block(random: np.random.Generator, start: int, count: int) -> pa.Table:
        makers: list[Callable[[], object]] = [
            lambda: random.integers(0, 1_000_000, count),
            lambda: random.random(count),
            lambda: pa.array(_WORDS[random.integers(0, len(_WORDS), count)]),
        ]
        return pa.table({f"c{number}": makers[number % len(makers)]() for number in range(columns)})

    return _written(folder / "wide", rows, max(1, 4_000_000 // columns), block)


def blobs(folder: Path, rows: int, size: int) -> Path:
    """Bytes that can't be compressed, all in one row group."""
    random = np.random.default_rng(0)
    file = folder / "blobs.parquet"
    schema = pa.schema({"id": pa.int64(), "blob": pa.binary()})
    # The number of values after which Spark's writer checks the size of a page; readers hold at least
    # a page.
    with pq.ParquetWriter(file, schema, write_batch_size=100) as writer:
        writer.write_table(
            pa.table({"id": range(rows), "blob": [random.bytes(size) for _ in range(rows)]}),
            row_group_size=rows,
        )
    return file


def _written(
    folder: Path,
    rows: int,
    block: int,
    make: Callable[[np.random.Generator, int, int], pa.Table],
    *,
    decimals_as_integers: bool = False,
) -> Path:
    """Two files, which suit Spark on two cores."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(0)
    for number, first in enumerate((0, rows // 2)):
        last = rows // 2 if number == 0 else rows
        tables = (make(random, at, min(block, last - at)) for at in range(first, last, block))
        _write(folder / f"part-{number}.parquet", tables, decimals_as_integers)
    return folder


def _write(file: Path, tables: Iterator[pa.Table], decimals_as_integers: bool) -> None:
    first = next(tables)
    with pq.ParquetWriter(file, first.schema, store_decimal_as_integer=decimals_as_integers) as writer:
        for table in (first, *tables):
            writer.write_table(table, row_group_size=table.num_rows)


def _items(random: np.random.Generator, start: int, count: int) -> pa.Table:
    def numbers(most: int) -> np.ndarray:
        return random.integers(1, most, count)

    def money(most: int) -> pa.Array:
        cents = pa.array(random.integers(0, most * 100, count)).cast(pa.decimal128(19, 0))
        # Cents are decimals of scale 2 with the same digits.
        return pa.Array.from_buffers(pa.decimal128(12, 2), count, cents.buffers())

    def date() -> pa.Array:
        return pa.array(random.integers(8000, 10500, count, np.int32)).cast(pa.date32())

    def word(words: int) -> pa.Array:
        picked = _WORDS[random.integers(0, len(_WORDS), (words, count))]
        return pa.array([" ".join(column) for column in picked.T])

    moments = random.integers(0, _SECONDS_OF_YEARS, count) * 1_000_000
    return pa.table(
        {
            "orderkey": np.arange(start, start + count) // 4,
            "partkey": numbers(200_000),
            "suppkey": numbers(10_000),
            "linenumber": numbers(8).astype(np.int32),
            "quantity": money(50),
            "extendedprice": money(100_000),
            "discount": money(1),
            "tax": money(1),
            "returnflag": word(1),
            "linestatus": word(1),
            "shipdate": date(),
            "commitdate": date(),
            "receipt": pa.array(moments).cast(pa.timestamp("us", "UTC")),
            "shipinstruct": word(2),
            "weight": random.random(count),
            "comment": word(4),
        }
    )
