"""What ingestion costs with more rows and more columns, compared with the alternatives."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.benchmarks.figures import Figure
from tests.benchmarks.spark import data
from tests.benchmarks.spark.write_variants import COMPARED, Ways
from tests.benchmarks.timing import interleaved
from tests.support.benchmark_sizes import ROUNDS, SCALE

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

ROWS = [int(rows * SCALE) for rows in (10_000, 100_000, 1_000_000, 6_000_000)]
COLUMNS = [4, 16, 64, 256]
CELLS = int(16_000_000 * SCALE)
"""Of a table, whatever its number of columns."""


def test_rows(spark: SparkSession, tmp_path: Path, show: Callable[..., None]) -> None:
    figure = Figure("rows", axis="rows of 16 columns")
    for rows in ROWS:
        source = data.lineitem(tmp_path / str(rows), rows)
        times = interleaved(ROUNDS, Ways(spark, source, tmp_path / "out").all(), warm_up=1)
        show(f"{rows:,} rows", times)
        figure.add_times(rows, times, *COMPARED)
    figure.save()

    seconds = figure.medians("seconds", "direct")
    assert seconds[ROWS[-1]] / ROWS[-1] <= seconds[ROWS[0]] / ROWS[0], "a row costs more in a larger table"


def test_columns(spark: SparkSession, tmp_path: Path, show: Callable[..., None]) -> None:
    figure = Figure("columns", axis=f"columns ({CELLS:,} values)")
    for columns in COLUMNS:
        source = data.wide(tmp_path / str(columns), CELLS // columns, columns)
        times = interleaved(ROUNDS, Ways(spark, source, tmp_path / "out").all(), warm_up=1)
        show(f"{columns} columns", times)
        figure.add_times(columns, times, *COMPARED)
    figure.save()

    seconds = figure.medians("seconds", "direct")
    assert seconds[COLUMNS[-1]] <= 4 * seconds[COLUMNS[0]], "the same values cost more in more columns"
