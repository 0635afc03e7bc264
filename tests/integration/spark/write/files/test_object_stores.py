"""Direct ingestion on a slow and faulty object store."""

import io
from collections.abc import Callable, Iterator
from http import HTTPStatus

import lance
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from lance_namespace.errors import ServiceUnavailableError
from pyspark.sql import SparkSession

from airflow_provider_lancens.spark import FileSource
from airflow_provider_lancens.spark.table.dataset_ref import DatasetRef
from airflow_provider_lancens.spark.write.write_task import WriteTask
from tests.servers.s3_bucket import Stored
from tests.servers.s3_credentials import TemporaryCredentials
from tests.servers.s3_double import S3Double
from tests.servers.s3_link import SLOW_DOWN, Fault
from tests.servers.s3_requests import PART, START_UPLOAD, Request
from tests.servers.vending_namespace import vending
from tests.support.writes import write_files

pytestmark = pytest.mark.thorough

ROWS = 40_000
DIMENSION = 128
SCHEMA = pa.schema({"id": pa.int64(), "vector": pa.list_(pa.float32(), DIMENSION)})
EXPIRED = Fault(refusal=(HTTPStatus.BAD_REQUEST, "ExpiredToken"))


@pytest.fixture
def s3() -> Iterator[S3Double]:
    with S3Double() as double:
        yield double


def rows(count: int = ROWS) -> pa.Table:
    """20 MB that can't be compressed, so four parts of an upload."""
    values = np.random.default_rng(0).random(count * DIMENSION, np.float32)
    return pa.table([range(count), pa.FixedSizeListArray.from_arrays(values, DIMENSION)], schema=SCHEMA)


def written(s3: S3Double) -> int:
    """Write the rows as an executor does, and return their number."""
    task = WriteTask(DatasetRef("s3://lake/t.lance", s3.storage), SCHEMA, None, 1_000_000, None)
    results = pa.Table.from_batches(task.run(iter(rows().to_batches(2000))))
    return int(sum(results["rows"].to_pylist()))


def at_second_part(fault: Fault, times: int) -> Callable[[Request], Fault | None]:
    left = [fault] * times
    return lambda request: left.pop() if request.kind == PART and request.part == 2 and left else None


@pytest.mark.parametrize(
    "fault",
    [SLOW_DOWN, Fault(bytes_before=1_000_000, reset=True), Fault(bytes_before=1_000_000, stall=1)],
    ids=["503", "reset", "stall"],
)
def test_a_single_part_that_fails_is_sent_again_and_no_other(s3: S3Double, fault: Fault) -> None:
    s3.fault = at_second_part(fault, times=1)

    assert written(s3) == ROWS

    kinds = [request.kind for request in s3.requests]
    parts = [request.part for request in s3.requests if request.kind == PART]
    assert kinds.count(START_UPLOAD) == 1
    # A part that was reset in its middle isn't logged, since it didn't arrive.
    assert sorted(parts) == sorted([1, 2, 3, 4] + ([2] if fault is SLOW_DOWN else []))


@pytest.mark.parametrize(
    ("fault", "message"),
    [(SLOW_DOWN, "SlowDown|503"), (EXPIRED, r"credentials have expired; a storage\.session_token")],
    ids=["503", "expired"],
)
def test_a_part_that_fails_for_good_fails_the_task_and_leaves_no_object(
    s3: S3Double, fault: Fault, message: str
) -> None:
    s3.fault = at_second_part(fault, times=1000)

    with pytest.raises(ServiceUnavailableError, match=message):
        written(s3)

    assert s3.bucket.keys == []


@pytest.mark.parametrize(
    ("lifetime", "seconds"), [(3, 8), pytest.param(5, 15, marks=pytest.mark.long)], ids=["3s", "5s"]
)
def test_a_write_outlives_the_credentials_that_it_began_with(
    spark: SparkSession, s3: S3Double, lifetime: float, seconds: float
) -> None:
    content = io.BytesIO()
    pq.write_table(rows(), content, row_group_size=ROWS // 10)
    s3.bucket.put("in/a.parquet", Stored.of(content.getvalue()))
    s3.credentials = TemporaryCredentials(lifetime)
    s3.incoming.bytes_per_second = s3.outgoing.bytes_per_second = len(content.getvalue()) / seconds

    result = write_files(spark, FileSource("parquet", "s3://lake/in/", tasks=1), vending(s3), "t")

    s3.outgoing.bytes_per_second = None
    storage = {**s3.endpoint, **s3.credentials.issue()}
    stored = lance.dataset("s3://lake/t.lance", storage_options=storage)
    assert (result.version, result.written, result.seconds > seconds) == (1, ROWS, True)
    assert sorted(stored.to_table(["id"])["id"].to_pylist()) == list(range(ROWS))
    assert s3.credentials.expired == 0
