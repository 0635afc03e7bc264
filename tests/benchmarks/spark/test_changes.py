"""What it costs to read the changes of 1% of the rows, beside reading the table.

Lance reads short values in chunks of some kilobytes. Rows that were written together, such as those of a day,
share chunks; one row in a hundred, spread over the table, is in every chunk, and costs as much as all rows.
"""

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from lance_namespace import DeclareTableRequest
from pyspark.sql import DataFrame, SparkSession

from airflow_provider_lancens.spark import NamespaceSpec, TableLayout
from airflow_provider_lancens.spark.maintenance.compact import compact_table
from tests.support.benchmark_sizes import SCALE
from tests.support.reads import read_changes, read_table
from tests.support.writes import write_table

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

ROWS = int(10_000_000 * SCALE)
ROUNDS = 5
VALUES = [f"sha2(cast(id * {number} + {{salt}} AS string), 512) AS v{number}" for number in range(1, 9)]
"""Columns of 128 characters, 1 kB a row, which compress badly."""


CHANGED = {"together": (ROWS // 2, ROWS // 2 + ROWS // 100, 1), "spread": (0, ROWS, 100)}
"""The ids that are upserted: the first one, the end, and the step."""
MOST = {
    ("together", False): 0.05,
    ("together", True): 0.2,
    ("spread", False): 1.0,
    ("spread", True): 1.0,
}
"""Of a full read, before and after a compaction of the whole table. Spark's job alone takes about 0.2 s."""


def _rows(spark: SparkSession, start: int, end: int, step: int, salt: int) -> DataFrame:
    values = (value.format(salt=salt) for value in VALUES)
    return spark.range(start, end, step, 16).selectExpr("id", *values)


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("changed", CHANGED)
def test_changes_cost_a_small_part_of_a_full_read(
    spark: SparkSession, tmp_path: Path, changed: str, compacted: bool
) -> None:
    spec = NamespaceSpec("dir", {"root": str(tmp_path)})
    spec.connect().declare_table(DeclareTableRequest(id=["t"]))
    write_table(_rows(spark, 0, ROWS, 1, 0), spec, "t", options=TableLayout(stable_row_ids=True))
    rows = _rows(spark, *CHANGED[changed], 1)
    version = write_table(rows, spec, "t", mode="upsert", on=["id"]).version
    if compacted:
        version = compact_table(spark, spec, "t").version

    reads: dict[str, Callable[[], DataFrame]] = {
        "all": lambda: read_table(spark, spec, "t", version=version),
        "changes": lambda: read_changes(spark, spec, "t", after_version=1, version=version),
    }
    seconds: dict[str, list[float]] = {name: [] for name in reads}
    for _ in range(ROUNDS):
        for name, read in reads.items():
            started = time.monotonic()
            read().write.format("noop").mode("overwrite").save()
            seconds[name].append(time.monotonic() - started)

    medians = {name: statistics.median(values) for name, values in seconds.items()}
    share = medians["changes"] / medians["all"]
    print(f"\n{changed}, {compacted=}: {medians}, share {share:.3f}")  # noqa: T201 for the one who measures
    assert reads["changes"]().count() == 2 * ROWS // 100
    assert share <= MOST[changed, compacted]
