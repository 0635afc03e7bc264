"""Many small epochs of a stream, with maintenance beside them: the last ones take as long as the first."""

import statistics
import threading
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from lance_namespace import DeclareTableRequest
from lance_namespace.errors import ConcurrentModificationError
from pyspark.sql import DataFrame, SparkSession

from airflow_provider_lancens.spark import NamespaceSpec, foreach_batch
from airflow_provider_lancens.spark.maintenance.clean_up import clean_up_versions
from airflow_provider_lancens.spark.maintenance.compact import compact_table
from tests.support.benchmark_sizes import SCALE
from tests.support.reads import read_table

pytestmark = [pytest.mark.long, pytest.mark.timeout(7200)]

EPOCHS = int(10_000 * SCALE)
TENTH = EPOCHS // 10
ROWS = 10
MOST = 1.3


def test_the_time_of_an_epoch_does_not_grow(spark: SparkSession, tmp_path: Path) -> None:
    spec = NamespaceSpec("dir", {"root": str(tmp_path)})
    spec.connect().declare_table(DeclareTableRequest(id=["t"]))
    seconds: list[float] = []
    write, ended = foreach_batch(spec, "t"), threading.Event()

    def timed(frame: DataFrame, epoch: int) -> None:
        started = time.perf_counter()
        write(frame, epoch)
        seconds.append(time.perf_counter() - started)
        if len(seconds) % TENTH == 0:
            print(f"{len(seconds):,}: {statistics.median(seconds[-TENTH:]):.3f} s", flush=True)  # noqa: T201
        if len(seconds) >= EPOCHS:
            ended.set()

    def maintain() -> None:
        while not ended.wait(30):
            with suppress(ConcurrentModificationError):
                compact_table(spark, spec, "t")
                clean_up_versions(spec, "t", older_than=timedelta(minutes=1), keep_versions=10)

    rows = spark.readStream.format("rate-micro-batch").options(rowsPerBatch=ROWS, numPartitions=2).load()
    checkpoint = str(tmp_path / "checkpoint")
    maintenance = threading.Thread(target=maintain)
    maintenance.start()
    query = rows.writeStream.foreachBatch(timed).option("checkpointLocation", checkpoint).start()
    try:
        while not ended.wait(1):
            assert query.isActive, query.exception()
    finally:
        query.stop()
        ended.set()
        maintenance.join()

    # The first epochs warm up the JVM.
    first, last = seconds[TENTH : 2 * TENTH], seconds[-TENTH:]
    medians = statistics.median(first), statistics.median(last)
    versions = len(list((tmp_path / "t.lance" / "_versions").glob("*.manifest")))
    print(  # noqa: T201 for the one who measures
        f"\n{EPOCHS:,} epochs: median {medians[0]:.3f} s in the second tenth, {medians[1]:.3f} s in the "
        f"last, ratio {medians[1] / medians[0]:.2f}; {versions} versions are left"
    )
    assert read_table(spark, spec, "t").count() >= EPOCHS * ROWS
    assert medians[1] <= MOST * medians[0]
