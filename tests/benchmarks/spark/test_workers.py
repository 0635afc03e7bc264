"""The memory of an executor, and the speedup by a second one."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_provider_lancens.spark.write import write_rows
from airflow_provider_lancens.spark.write.files import file_writer
from tests.benchmarks.figures import Figure
from tests.benchmarks.spark import data
from tests.benchmarks.spark.worker_probes import (
    ONE_THREAD,
    MeasuredTask,
    PinnedTask,
    fresh_workers,
    peak_megabytes,
)
from tests.benchmarks.spark.write_variants import Ways
from tests.benchmarks.timing import Measure, interleaved
from tests.support.benchmark_sizes import LINEITEM_ROWS, ROUNDS, SCALE

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

TASKS = [1, 2]
"""The session has two cores."""
MOST_MEGABYTES = 700
MEGABYTE = 1024 * 1024


@pytest.mark.parametrize("kind", ["lineitem", "vectors"])
def test_two_workers_are_faster_than_one(
    spark: SparkSession,
    kind: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    show: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ways = Ways(spark, request.getfixturevalue(kind), tmp_path / "out")
    monkeypatch.setattr(file_writer, "FileTask", PinnedTask)
    with fresh_workers(spark, str(tmp_path), **ONE_THREAD):
        times = interleaved(
            ROUNDS,
            {
                "one": ways.measured(lambda name: ways.direct(name, tasks=1)),
                "two": ways.measured(lambda name: ways.direct(name, tasks=2)),
            },
            warm_up=1,
        )
    show(f"{kind}: workers of one thread, pinned to a core each", times)

    assert times.ratio("one", "two") >= 1.5


def test_executors(spark: SparkSession, lineitem: Path, tmp_path: Path, show: Callable[..., None]) -> None:
    """Tasks of one thread each, as many at once as the machine has cores at most."""
    ways, figure = (
        Ways(spark, lineitem, tmp_path / "out"),
        Figure("executors", axis=f"tasks at once ({LINEITEM_ROWS:,} rows)"),
    )

    def candidate(way: str, tasks: int) -> Measure:
        return ways.measured(lambda name: getattr(ways, way)(name, tasks=tasks))

    names = [(way, tasks) for way in ("direct", "frame", "parquet") for tasks in TASKS]
    with fresh_workers(spark, str(tmp_path), **ONE_THREAD):
        candidates = {f"{way} {tasks}": candidate(way, tasks) for way, tasks in names}
        times = interleaved(ROUNDS, candidates, warm_up=1)
    show("lineitem, tasks of one thread", times)
    for way, tasks in names:
        figure.add("seconds", way, tasks, times.rounds[f"{way} {tasks}"])
        figure.add_ratio(way, f"{way} by one task", tasks, times.ratio(f"{way} {tasks}", f"{way} 1"))
    figure.save()

    assert times.ratio(f"direct {TASKS[-1]}", "direct 1") < 1


@pytest.mark.parametrize("way", ["direct", "frame"])
@pytest.mark.parametrize("kind", ["lineitem", "vectors", "blobs"])
def test_a_worker_uses_little_memory(
    spark: SparkSession,
    kind: str,
    way: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(write_rows, "WriteTask", MeasuredTask)
    ways = Ways(spark, request.getfixturevalue(kind), tmp_path / "out")
    if kind == "blobs":
        # Spark's own scan would hold 4,096 of them at a time, in the JVM.
        spark.conf.set("spark.sql.parquet.columnarReaderBatchSize", "64")

    with fresh_workers(spark, str(tmp_path)):
        ways.measured(getattr(ways, way))()

    peak = peak_megabytes(tmp_path)
    with capsys.disabled():
        print(f"\n{kind}, {way}: a worker's peak is {peak:.0f} MB")  # noqa: T201
    assert peak <= MOST_MEGABYTES


@pytest.fixture(scope="session")
def blobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return data.blobs(tmp_path_factory.mktemp("blobs"), int(2000 * SCALE), MEGABYTE)
