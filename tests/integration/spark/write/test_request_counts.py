"""The calls to the metastore and requests to the storage of a small write to an existing table."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.spark import FileSource, NamespaceSpec, write_files
from tests.servers.proxy import Proxy
from tests.servers.s3_credentials import TemporaryCredentials
from tests.servers.s3_double import S3Double
from tests.servers.vending_namespace import vending

Write = Callable[[NamespaceSpec, str], None]

MOST_REQUESTS = 20
"""Of one task. Lance alone makes ten for it: it opens the version twice, writes the data, and commits."""
DESCRIBE = ["get_catalogs", "get_table_req"]
"""The first tells the server's release, once for each connection."""


@pytest.fixture
def write(spark: SparkSession, tmp_path: Path) -> Write:
    """Write ten rows under a new key."""
    file = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"n": range(10)}), file)

    def write(spec: NamespaceSpec, table: str) -> None:
        source = FileSource("parquet", str(file))
        assert write_files(spark, source, spec, table, idempotency_key=uuid.uuid4().hex).committed

    return write


@pytest.fixture
def s3() -> Iterator[S3Double]:
    with S3Double() as double:
        double.credentials = TemporaryCredentials(lifetime=3600)
        yield double


def test_a_write_makes_twenty_requests_to_the_storage(s3: S3Double, write: Write) -> None:
    write(vending(s3), "t")

    with s3.counted() as requests:
        write(vending(s3), "t")

    assert requests.total() <= MOST_REQUESTS, requests


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
