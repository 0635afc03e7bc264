"""Rows of very many columns, written and read; run by `test_wide_rows` for Spark Connect.

In a separate process there, which can have only one Spark session.
"""

import sys
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from airflow_provider_lancens.spark import NamespaceSpec
from tests.support.reads import read_table
from tests.support.writes import write_table

_KINDS = [
    "concat('x', id) AS c{}",
    "concat('y', id) AS c{}",
    "array(1.5f, cast(id AS float)) AS c{}",
    "struct('some' AS a, concat('words', id) AS b) AS c{}",
    "id * {0} AS c{0}",
]
_MAP = "map('key', id) AS c{}"


def wide_rows(spark: SparkSession, rows: int, columns: int, maps: bool = False) -> DataFrame:
    """Rows of strings, numbers, arrays and structs in turn; with maps, Python can't compute their size."""
    kinds = [*_KINDS, _MAP] if maps else _KINDS
    values = (kinds[number % len(kinds)].format(number) for number in range(1, columns))
    return spark.range(0, rows, 1, 1).selectExpr("id", *values)


def expected_row(number: int, columns: int) -> list[Any]:
    """The row with this id, without maps."""
    values = [f"x{number}", f"y{number}", [1.5, float(number)], ("some", f"words{number}"), None]
    return [number, *(values[column % len(values)] or number * column for column in range(1, columns))]


def write_and_read(
    spark: SparkSession, spec: NamespaceSpec, table: str, columns: int, **how: Any
) -> DataFrame:
    """Write five rows of this many columns, and return the rows read back."""
    frame = wide_rows(spark, 5, columns)
    result = write_table(frame, spec, table, **how)
    assert (result.written, result.is_done) == (5, True)
    back = read_table(spark, spec, table, version=result.version)
    assert back.columns == frame.columns
    return back


def main(address: str, root: str, table: str, columns: str) -> None:
    """Do this with a Spark Connect server."""
    spark = SparkSession.builder.remote(f"sc://{address}").getOrCreate()
    try:
        back = write_and_read(spark, NamespaceSpec("dir", {"root": root}), table, int(columns))
        assert [list(row) for row in back.collect()] == [expected_row(n, int(columns)) for n in range(5)]
    finally:
        spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
