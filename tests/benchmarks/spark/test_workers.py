"""The memory of an executor, and the speedup by a second one."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_provider_lancens.spark.write import write_plan
from airflow_provider_lancens.spark.write.files import file_rows
from tests.benchmarks.spark import data
from tests.benchmarks.spark.conftest import SCALE
from tests.benchmarks.spark.worker_probes import (
    ONE_THREAD,
    MeasuredTask,
    PinnedTask,
    peak_megabytes,
    use_fresh_workers,
)
from tests.benchmarks.spark.write_variants import Ways
from tests.benchmarks.timing import interleaved

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

ROUNDS = 5
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
    monkeypatch.setattr(file_rows, "FileTask", PinnedTask)
    use_fresh_workers(spark, str(tmp_path), **ONE_THREAD)

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
    monkeypatch.setattr(write_plan, "WriteTask", MeasuredTask)
    use_fresh_workers(spark, str(tmp_path))
    ways = Ways(spark, request.getfixturevalue(kind), tmp_path / "out")
    if kind == "blobs":
        # Spark's own scan would hold 4,096 of them at a time, in the JVM.
        spark.conf.set("spark.sql.parquet.columnarReaderBatchSize", "64")

    ways.measured(getattr(ways, way))()

    peak = peak_megabytes(tmp_path)
    with capsys.disabled():
        print(f"\n{kind}, {way}: a worker's peak is {peak:.0f} MB")  # noqa: T201
    assert peak <= MOST_MEGABYTES


@pytest.fixture(scope="session")
def blobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return data.blobs(tmp_path_factory.mktemp("blobs"), int(2000 * SCALE), MEGABYTE)
