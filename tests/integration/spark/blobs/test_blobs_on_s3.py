"""Large values beside a table on S3: which requests are made for them."""

from collections import Counter
from collections.abc import Iterator

import obstore
import pytest
from lance_namespace import DeclareTableRequest
from obstore.store import S3Store
from pyspark.sql import SparkSession

from airflow_provider_lancens.spark import NamespaceSpec, TableLayout
from tests.servers.s3_double import S3Double
from tests.support.reads import read_table
from tests.support.writes import write_table

MEBIBYTE = 1024 * 1024


@pytest.fixture
def s3() -> Iterator[S3Double]:
    with S3Double() as double:
        yield double


@pytest.fixture
def videos(s3: S3Double) -> list[str]:
    """Objects outside the table."""
    store = S3Store(s3.bucket_name, config=s3.storage)
    names = [f"videos/{number}.mp4" for number in range(3)]
    for number, name in enumerate(names):
        obstore.put(store, name, bytes([number]) * MEBIBYTE)
    return names


def test_objects_are_not_read_when_they_are_written_and_then_by_ranges(
    spark: SparkSession, s3: S3Double, videos: list[str]
) -> None:
    storage = {f"storage.{name}": value for name, value in s3.storage.items()}
    spec = NamespaceSpec("dir", {"root": f"s3://{s3.bucket_name}/root", **storage})
    spec.connect().declare_table(DeclareTableRequest(id=["clips"]))
    rows = [(number, f"s3a://{s3.bucket_name}/{name}") for number, name in enumerate(videos)]

    frame = spark.createDataFrame(rows, "id long, video string")
    write_table(frame, spec, "clips", options=TableLayout(blob_columns=["video"]))
    written, passed = kinds_for(s3, videos), s3.outgoing.passed
    found = read_table(spark, spec, "clips", blobs={"video": (5, 3)}).collect()

    assert {row["id"]: bytes(row["video"]) for row in found} == {n: bytes([n]) * 3 for n in range(3)}
    assert written == {"put": 3}
    assert kinds_for(s3, videos) == {"put": 3, "head": 6, "get": 3}
    assert s3.outgoing.passed - passed < MEBIBYTE


def kinds_for(s3: S3Double, keys: list[str]) -> Counter[str]:
    """The kinds of the requests so far for these objects."""
    return Counter(request.kind for request in s3.requests if request.key in keys)
