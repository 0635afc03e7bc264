"""Ingestion compared with the JVM connector, on the Spark version that the connector supports."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.figures import Figure
from tests.benchmarks.spark import data
from tests.benchmarks.spark.connector import JVM_THREADS
from tests.benchmarks.timing import Times
from tests.pyspark_versions import SPARK_V_4_0_PLUS
from tests.servers.maven import jars_of
from tests.support.benchmark_sizes import ROUNDS, SCALE

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(SPARK_V_4_0_PLUS, reason="the JVM connector of `connector.xml` is made for Spark 3.5"),
]

HERE = Path(__file__).parent
# Already with this many, one of its two writers sometimes waits for good on two cores.
ROWS = 150_000
ATTEMPTS = 5
SECONDS = 300
"""How long a run may take until one of the connector's writers counts as waiting for good."""


def test_rows_of_many_columns(tmp_path: Path, show: Callable[..., None], capsys: Any) -> None:
    source = data.lineitem(tmp_path / "source", int(ROWS * SCALE))
    [jar] = jars_of(HERE / "connector.xml").iterdir()

    measured_by = compared(jar, source, tmp_path / "out")
    times, sizes = Times(measured_by["seconds"]), measured_by["bytes"]
    show("lineitem, 16 columns, beside the JVM connector", times)
    figure = Figure("connector", axis="rows of 16 columns")
    figure.add_times(f"{int(ROWS * SCALE):,} rows", times, ("direct", "connector"), ("frame", "connector"))
    for way, size in sizes.items():
        figure.add("MB on disk", way, f"{int(ROWS * SCALE):,} rows", [size / 1e6])
    figure.save()
    with capsys.disabled():
        print({way: f"{size / 1e6:.0f} MB" for way, size in sizes.items()})  # noqa: T201

    assert times.ratio("direct", "connector") < 1
    assert sizes["frame"] < sizes["connector"]


def compared(jar: Path, source: Path, folder: Path) -> dict[str, Any]:
    """Compare them in one process, or in another one if the connector hung."""
    for attempt in range(ATTEMPTS):
        with suppress(subprocess.TimeoutExpired):
            return compared_once(jar, source, folder / str(attempt))
    pytest.fail(f"the connector's writer waited for good in each of {ATTEMPTS} runs")


def compared_once(jar: Path, source: Path, folder: Path) -> dict[str, Any]:
    folder.mkdir(parents=True)
    arguments = [str(argument) for argument in (jar, source, folder, ROUNDS)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.spark.connector", *arguments],
        env={**os.environ, **JVM_THREADS},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        cwd=HERE.parents[2],
    )
    assert done.returncode == 0, done.stderr[-5000:]
    measured_by: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return measured_by
