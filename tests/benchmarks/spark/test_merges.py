"""An upsert of a hundredth of a table beside Lance's own merge, and the memory of each in the driver."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import lance
import pytest
from lance_namespace import DeclareTableRequest
from pyspark.sql import SparkSession

from airflow_provider_lancens.spark import NamespaceSpec
from tests.support.benchmark_sizes import SCALE
from tests.support.writes import write_table

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

ROWS = int(10_000_000 * SCALE)
SHARE, STEP = 100, 7919
"""One row in so many is upserted, spread over the whole table; a few are new."""
MOST_MB = 500
"""The rows that are upserted take more than that, as Python objects; their keys don't."""
ROUNDS = 3
DRIVER = """
import json, resource, sys, time
import lance
from airflow_provider_lancens.spark import NamespaceSpec
from tests.support.writes import write_table
from airflow_provider_lancens.spark.session import spark_session

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

way, root, rows = sys.argv[1:]
spec = NamespaceSpec("dir", {"root": root})
with spark_session("merge", {"spark.master": "local[2]", "spark.driver.memory": "4g"}) as spark:
    spark.sparkContext.setLogLevel("OFF")
    spark.range(10).mapInArrow(lambda batches: batches, "id long").count()
    before, started = peak(), time.perf_counter()
    if way == "write_table":
        frame = spark.read.parquet(rows)
        write_table(frame, spec, "t", mode="upsert", on=["id"])
    else:
        table = spark.read.parquet(rows).toArrow()
        merge = lance.dataset(root + "/t.lance").merge_insert("id")
        merge.when_matched_update_all().when_not_matched_insert_all().execute(table)
    print(json.dumps({"seconds": time.perf_counter() - started, "mb": peak() - before}))
"""


@pytest.fixture
def made(spark: SparkSession, tmp_path: Path) -> Path:
    """A table, and the rows to upsert as Parquet."""
    spec = NamespaceSpec("dir", {"root": str(tmp_path / "table")})
    spec.connect().declare_table(DeclareTableRequest(id=["t"]))
    columns = ("id", "id % 100000 AS customer", "id * 0.01D AS amount", "concat('order ', id) AS note")
    write_table(spark.range(0, ROWS, 1, 8).selectExpr(*columns), spec, "t")
    keys = f"(id * {STEP}) % {ROWS} + {ROWS // 1000} AS id"
    changed = spark.range(0, ROWS // SHARE, 1, 2).selectExpr(keys)
    changed.selectExpr(*columns[:2], "-1D AS amount", columns[3]).write.parquet(str(tmp_path / "rows"))
    return tmp_path


def test_an_upsert_holds_no_rows_in_the_driver(spark: SparkSession, made: Path) -> None:
    results: dict[str, list[dict[str, float]]] = {"write_table": [], "merge_insert": []}
    for number in range(ROUNDS):
        for way in sorted(results, reverse=number % 2 == 1):
            results[way].append(run(way, made))

    ratios = [
        ours["seconds"] / theirs["seconds"]
        for ours, theirs in zip(results["write_table"], results["merge_insert"], strict=True)
    ]
    print(f"\n{ROWS:,} rows: {results}, ratios {ratios}")  # noqa: T201 for the one who measures
    assert max(one["mb"] for one in results["write_table"]) <= MOST_MB


def run(way: str, made: Path) -> dict[str, float]:
    """Upsert by a driver of its own, into a copy of the table."""
    root = made / way
    shutil.copytree(made / "table", root)
    command = [sys.executable, "-c", DRIVER, way, str(root), str(made / "rows")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    dataset = lance.dataset(root / "t.lance")
    assert dataset.count_rows("amount < 0") == ROWS // SHARE
    shutil.rmtree(root)
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result
