"""An upsert of a hundredth of a table compared with MERGE by Delta Lake and Apache Iceberg, on Spark 3.5."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.benchmarks.figures import Figure
from tests.benchmarks.spark.upserts import FORMATS
from tests.benchmarks.timing import Times
from tests.pyspark_versions import SPARK_V_4_0_PLUS
from tests.servers.maven import jars_of
from tests.support.benchmark_sizes import ROUNDS, SCALE

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(SPARK_V_4_0_PLUS, reason="the jars of `merges.xml` are made for Spark 3.5"),
]

HERE = Path(__file__).parent
ROWS = 10_000_000


def test_an_upsert_is_faster_than_a_merge_by_delta(tmp_path: Path, show: Callable[..., None]) -> None:
    rows = int(ROWS * SCALE)
    figure = Figure("upserts", axis="rows")
    times = compared(tmp_path, rows)
    show(f"upsert of 1% into {rows:,} rows", times)
    figure.add_times(rows, times, *(("upsert", kind) for kind in FORMATS))
    figure.save()

    for kind in ("delta, rewriting files", "delta, deletion vectors"):
        assert times.ratio("upsert", kind) < 1


def compared(folder: Path, rows: int) -> Times:
    jars = ",".join(str(jar) for jar in jars_of(HERE / "merges.xml").iterdir())
    command = [sys.executable, "-m", "tests.benchmarks.spark.upserts", jars, folder, rows, ROUNDS]
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, cwd=HERE.parents[2]
    )
    assert done.returncode == 0, done.stderr[-5000:]
    return Times(json.loads(done.stdout.splitlines()[-1]))
