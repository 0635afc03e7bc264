"""The code of `docs/streams.md` runs as it is written, with a catalog in a folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_lancens import connect
from airflow_provider_lancens.spark import NamespaceSpec
from tests.pyspark_versions import has_data_sources
from tests.support.page_code import run_blocks

pytestmark = pytest.mark.thorough

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def queries(spark: SparkSession) -> Iterator[Any]:
    """The session's running queries, which are stopped at the end."""
    yield spark.streams
    for query in spark.streams.active:
        query.stop()


@has_data_sources
def test_streams_are_written_and_read(spark: SparkSession, tmp_path: Path, queries: Any) -> None:
    from airflow_provider_lancens.spark import lance_data_source  # not available in an older PySpark

    folder = NamespaceSpec("dir", {"root": str(tmp_path / "lake")})
    spark.dataSource.register(lance_data_source(folder))
    lake = connect("dir", {"root": str(tmp_path / "lake")}, spark=spark)
    for database, table in (("web", "events"), ("nyc", "flights")):
        lake.create_namespace(database)
        lake.declare_table(f"{database}.{table}", schema={"id": "bigint", "time": "bigint"})
    spark.range(9).selectExpr("id", "id AS time").write.parquet(str(tmp_path / "files"))
    events = spark.readStream.schema("id long, time long").parquet(str(tmp_path / "files"))
    elsewhere = {
        "s3a://lake/checkpoints/events": str(tmp_path / "appended"),
        '"..."': repr(str(tmp_path / "upserted")),
        "datetime(2026, 11, 1, tzinfo=UTC)": "datetime.now(UTC)",
    }
    names: Any = run_blocks("streams", elsewhere, spark=spark, lake=lake, events=events, namespace=folder)
    for query in queries.active:
        query.processAllAvailable()
    assert {row["id"] for row in lake.table("web.events").to_arrow().to_pylist()} == set(range(9))
    assert names["flights"].isStreaming
