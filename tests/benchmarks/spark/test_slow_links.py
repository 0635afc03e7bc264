"""Direct ingestion from and to an object store behind a slow link, compared with the time of the link alone.

The link is slower than the executor by far, so the double's own work doesn't count; each direction has the
same bandwidth, and a request takes `LATENCY` more.
"""

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_provider_lancens.spark import FileSource
from tests.servers.s3_credentials import TemporaryCredentials
from tests.servers.s3_double import S3Double
from tests.servers.vending_namespace import vending
from tests.support.benchmark_sizes import SCALE
from tests.support.writes import write_files

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

BYTES_PER_SECOND = 8_000_000 * SCALE
LATENCY = 0.02


@pytest.mark.parametrize("kind", ["lineitem", "vectors"])
def test_a_task_uses_most_of_the_link(
    spark: SparkSession, kind: str, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    files: Path = request.getfixturevalue(kind)
    with S3Double() as s3:
        s3.bucket.adopt("in", files)
        s3.credentials = TemporaryCredentials(lifetime=3600)
        s3.latency = LATENCY
        for direction in (s3.incoming, s3.outgoing):
            direction.bytes_per_second = BYTES_PER_SECOND
        started = time.perf_counter()

        write_files(spark, FileSource("parquet", "s3://lake/in/", tasks=1), vending(s3), kind)

        seconds = time.perf_counter() - started
        alone = max(s3.incoming.passed, s3.outgoing.passed) / BYTES_PER_SECOND
    with capsys.disabled():
        print(f"\n{kind}: {seconds:.1f} s, the link alone {alone:.1f} s: {alone / seconds:.2f}")  # noqa: T201
    assert alone / seconds >= 0.8
