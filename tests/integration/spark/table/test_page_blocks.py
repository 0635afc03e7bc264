"""The code of pages on tables runs as it is written, with a catalog in a folder in place of the metastore."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import airflow_provider_lancens.spark
from airflow_provider_lancens import LanceCatalog, connect
from tests.pyspark_versions import has_data_sources
from tests.support.page_code import run_blocks

pytestmark = pytest.mark.thorough

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LanceCatalog:
    """The catalog that `connect` returns, with flights of three months, the first of them audited."""
    lake = connect("dir", {"root": str(tmp_path)}, spark=spark)
    monkeypatch.setattr(airflow_provider_lancens, "connect", lambda *_, **__: lake)
    lake.create_namespace("nyc")
    flights = lake.declare_table("nyc.flights")
    for month in (1, 2, 3):
        flights.append(rows_of(spark, month), key=f"flights of month {month}")
    flights.tag("audited", 1)
    return lake


def rows_of(spark: SparkSession, month: int) -> Any:
    return spark.range(20).selectExpr("id", f"{month} AS month", "if(id % 2 = 0, 'JFK', 'LGA') AS origin")


def test_rows_are_written_and_read(lake: LanceCatalog, spark: SparkSession) -> None:
    written = run_blocks("spark", spark=spark, df=rows_of(spark, 4))
    assert written["result"].inserted == 20  # type: ignore[attr-defined]
    read: Any = run_blocks("reading", spark=spark)["flights"]
    assert read.columns == ["origin"]
    assert read.count() == 20


def test_a_table_is_maintained(lake: LanceCatalog, spark: SparkSession) -> None:
    flights = lake.table("nyc.flights")
    run_blocks("maintenance", spark=spark)
    assert [one.name for one in flights.indices()] == ["origin_idx"]
    before = flights.version
    run_blocks("vacuum", lake=lake)
    assert (flights.version, flights.count_rows()) == (before, 60)


def test_indices_are_built_and_measured(lake: LanceCatalog, spark: SparkSession) -> None:
    lake.create_namespace("images")
    digits = lake.declare_table("images.digits", schema={"id": "bigint", "embedding": "float[8]"})
    vectors = "transform(sequence(1, 8), i -> float(hash(id, i) % 100)) AS embedding"
    digits.append(spark.range(600).selectExpr("id", vectors))
    found = run_blocks("indices", lake=lake, namespace=lake.namespace)
    assert 0 <= found["recall"] <= 1  # type: ignore[operator]
    assert [one.name for one in lake.table("nyc.flights").indices()] == ["origin_idx"]


def test_a_version_is_restored(lake: LanceCatalog) -> None:
    flights = lake.table("nyc.flights")
    lost, *_ = flights.at(3).dataset().get_fragments()[-1].data_files()
    (Path(flights.location) / "data" / lost.path).unlink()
    run_blocks("restore", lake=lake)
    assert flights.count_rows() == 20


def test_bookmarks_are_listed(lake: LanceCatalog, capsys: pytest.CaptureFixture[str]) -> None:
    lake.create_namespace("shop")
    orders = lake.declare_table("shop.orders")
    orders.append(lake.table("nyc.flights").to_arrow())
    orders.move_bookmark("billing", 1)
    run_blocks("changes", lake=lake)
    assert capsys.readouterr().out.startswith("billing 1 0")


def test_files_are_loaded(spark: SparkSession, tmp_path: Path) -> None:
    lake = connect("dir", {"root": str(tmp_path / "lake")}, spark=spark)
    lake.create_namespace("nyc")
    flights = lake.declare_table("nyc.flights")
    columns = {"origin": ["JFK"] * 3, "dest": ["LAX"] * 3, "dep_delay": [1, None, 3], "month": [1, 1, 2]}
    hours = pa.array([0, 1, 2], pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({**columns, "time_hour": hours}), tmp_path / "2013-01.parquet")
    run_blocks("files", {"s3://landing/flights/2013-*.parquet": str(tmp_path / "2013-*.parquet")}, lake=lake)
    assert (flights.count_rows(), flights.schema.names[-1]) == (1, "hour")


@has_data_sources
def test_the_data_source_writes_and_reads(
    lake: LanceCatalog, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = airflow_provider_lancens.spark.NamespaceSpec("dir", {"root": str(tmp_path)})
    monkeypatch.setattr(airflow_provider_lancens.spark, "NamespaceSpec", lambda *_: folder)
    lake.declare_table("flights").append(rows_of(spark, 1))
    read: Any = run_blocks("data-source", {"/lake": str(tmp_path)}, spark=spark, df=rows_of(spark, 4))
    assert read["january"].count() == 60
    assert lake.table("nyc.flights").count_rows() == 80


def test_a_column_is_computed(lake: LanceCatalog, spark: SparkSession) -> None:
    lake.create_namespace("images")
    digits = lake.declare_table("images.digits")
    digits.append(spark.range(5).selectExpr("id", "array(float(id), 1F) AS pixels"))
    model: dict[str, Any] = {}
    exec("def load_model():\n    return 'pixels'\ndef embed(batch, name):\n    return batch[name]", model)
    run_blocks("computed-columns", lake=lake, embed=model["embed"], load_model=model["load_model"])
    assert digits.count_rows(filter="embedding IS NOT NULL") == 5
