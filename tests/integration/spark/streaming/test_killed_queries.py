"""Queries whose driver is killed at random, and started again: every row is written once."""

import contextlib
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from lance_namespace import CreateNamespaceRequest, DeclareTableRequest

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.namespace import Hive2Namespace
from airflow_provider_lancens.spark import NamespaceSpec
from airflow_provider_lancens.spark.table.resolved_table import resolved_table
from tests.pyspark_versions import SPARK_V_4_1_PLUS

pytestmark = pytest.mark.thorough

ROWS_OF_AN_EPOCH = 7
DRIVER = """
import sys
from airflow_provider_lancens.spark import NamespaceSpec, foreach_batch
from airflow_provider_lancens.spark.session import spark_session
from tests.servers.spark import PRELOADED

uri, root, table, checkpoint, rows, sink = sys.argv[1:]
spec = NamespaceSpec("airflow_provider_lancens.namespace.Hive2Namespace", {"uri": uri, "root": root})
conf = {"spark.master": "local[2]", "spark.sql.streaming.minBatchesToRetain": "2", **PRELOADED}
with spark_session("stream", conf) as spark:
    spark.sparkContext.setLogLevel("OFF")
    rows = spark.readStream.format("rate-micro-batch").options(rowsPerBatch=rows, numPartitions=2).load()
    writer = rows.select("value").writeStream.option("checkpointLocation", checkpoint)
    if sink == "format":
        from airflow_provider_lancens.spark import lance_data_source

        spark.dataSource.register(lance_data_source(spec))
        query = writer.format("lancens").option("table", table).start()
    else:
        query = writer.foreachBatch(foreach_batch(spec, table)).start()
    query.awaitTermination()
"""
"""Each epoch has the next rows, the same whenever it is repeated."""


class Queries:
    """A query that is started, killed, and started again."""

    def __init__(self, metastore: MetastoreServer, database: str, folder: Path) -> None:
        self.id, self.folder = [database, "ticks"], folder
        properties = {"uri": metastore.uri, "root": str(folder / "lake")}
        self.spec = NamespaceSpec("airflow_provider_lancens.namespace.Hive2Namespace", properties)
        with closing(Hive2Namespace(**properties)) as namespace:
            namespace.create_namespace(CreateNamespaceRequest(id=[database]))
            namespace.declare_table(DeclareTableRequest(id=self.id, properties={"managed_by": "impl"}))
        self.arguments = [metastore.uri, str(folder / "lake"), "$".join(self.id), str(folder / "checkpoint")]

    def run(self, sink: str, until: Callable[[], bool]) -> None:
        """Start the query, and kill it once something is true."""
        command = [sys.executable, "-c", DRIVER, *self.arguments, str(ROWS_OF_AN_EPOCH), sink]
        log = (self.folder / "log").open("ab")
        with subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True) as process:
            try:
                while not until():
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(timeout=0.2)
                    assert process.poll() is None, (self.folder / "log").read_text()[-3000:]
            finally:
                os.killpg(process.pid, signal.SIGKILL)

    def version(self) -> int:
        with resolved_table(self.spec, "$".join(self.id)) as target:
            return target.latest_version() or 0

    def values(self) -> list[Any]:
        with resolved_table(self.spec, "$".join(self.id)) as target:
            dataset = target.open_latest()
            return [] if dataset is None else sorted(dataset.to_table()["value"].to_pylist())


MANY = pytest.param(1000, 60, marks=[pytest.mark.long, pytest.mark.timeout(7200)])


@pytest.mark.parametrize(("epochs", "most"), [(3, 2), MANY])
def test_every_row_is_written_once(
    metastore: MetastoreServer, database: str, tmp_path: Path, epochs: int, most: int
) -> None:
    queries, chance = Queries(metastore, database, tmp_path), random.Random(epochs)
    sinks = ["format", "foreach_batch"] if SPARK_V_4_1_PLUS else ["foreach_batch"]
    while (begun := queries.version()) < epochs:
        enough = begun + chance.randint(1, most)
        sink = sinks[0]
        sinks.reverse()
        queries.run(sink, lambda enough=enough: queries.version() >= enough)  # type: ignore[misc]

    found = queries.values()
    assert len(found) >= epochs * ROWS_OF_AN_EPOCH
    assert found == list(range(len(found)))
