"""The calls to the metastore and requests to the storage of a small write to an existing table."""

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.spark import FileSource, NamespaceSpec
from tests.servers.proxy import Proxy
from tests.servers.s3_credentials import TemporaryCredentials
from tests.servers.s3_double import S3Double
from tests.servers.vending_namespace import vending
from tests.support.writes import write_files

Write = Callable[[NamespaceSpec, str], None]

MOST_REQUESTS = 19
"""Of one task. Lance alone makes ten for it: it opens the version twice, writes the data, and commits."""
MOST_ROUND_TRIPS = 13
"""Of these requests, as many as wait for an earlier one: five of them are Lance's."""
LATENCY = 0.4
"""Seconds of a request, long compared with the work in between."""
DESCRIBE = ["get_catalogs", "get_table_req"]
"""The first tells the server's release, once for each connection."""


@pytest.fixture
def write(spark: SparkSession, tmp_path: Path) -> Write:
    """Write ten rows under a new key."""
    file = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"n": range(10)}), file)

    def write(spec: NamespaceSpec, table: str) -> None:
        source = FileSource("parquet", str(file))
        assert write_files(spark, source, spec, table, key=uuid.uuid4().hex).is_done

    return write


@pytest.fixture
def s3() -> Iterator[S3Double]:
    with S3Double() as double:
        double.credentials = TemporaryCredentials(lifetime=3600)
        yield double


def test_a_write_makes_nineteen_requests_to_the_storage(s3: S3Double, write: Write) -> None:
    write(vending(s3), "t")

    with s3.counted() as requests:
        write(vending(s3), "t")

    assert requests.total() <= MOST_REQUESTS, requests


def test_requests_that_need_not_wait_for_another_are_made_in_parallel(s3: S3Double, write: Write) -> None:
    write(vending(s3), "t")
    answered: list[float] = []
    s3.gate = lambda _: answered.append(time.monotonic())
    s3.latency = LATENCY

    write(vending(s3), "t")

    round_trips, last = 0, 0.0
    for time_of_answer in sorted(answered):
        if time_of_answer - last > 0.8 * LATENCY:
            round_trips, last = round_trips + 1, time_of_answer
    assert round_trips <= MOST_ROUND_TRIPS


def test_a_write_makes_two_calls_to_the_metastore(
    metastore: MetastoreServer, write: Write, tmp_path: Path, database: str
) -> None:
    with Proxy(metastore.uri) as proxy:
        spec = NamespaceSpec(
            "airflow_provider_lancens.namespace.Hive2Namespace",
            {"uri": proxy.uri, "root": str(tmp_path / "root")},
        )
        with closing(spec.connect()) as namespace:  # type: ignore[type-var]
            namespace.create_namespace({"id": [database]})
            namespace.declare_table({"id": [database, "t"]})
        write(spec, f"{database}$t")
        before = len(proxy.calls)

        write(spec, f"{database}$t")

        assert proxy.calls[before:] == DESCRIBE
