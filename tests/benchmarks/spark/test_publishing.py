"""How long it takes to publish a staged version, and that this doesn't grow with its rows or its files."""

import time
from pathlib import Path
from typing import Any

import pytest
from lance_namespace import DeclareTableRequest
from pyspark.sql import SparkSession

from airflow_provider_lancens.spark import NamespaceSpec, TableLayout
from airflow_provider_lancens.spark.publish import publish_version
from tests.support.benchmark_sizes import SCALE
from tests.support.results import number_of
from tests.support.writes import write_table

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

SIZES = [10_000, int(1_000_000 * SCALE), int(10_000_000 * SCALE)]
MODES: dict[str, dict[str, Any]] = {
    "append": {"mode": "append"},
    "upsert": {"mode": "upsert", "on": ["id"]},
    "overwrite": {"mode": "overwrite"},
}


@pytest.fixture
def spec(tmp_path: Path) -> NamespaceSpec:
    spec = NamespaceSpec("dir", {"root": str(tmp_path)})
    spec.connect().declare_table(DeclareTableRequest(id=["t"]))
    return spec


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("rows", SIZES)
def test_a_version_is_published_within_a_second(
    spark: SparkSession, spec: NamespaceSpec, mode: str, rows: int
) -> None:
    columns = ("id", "cast(id AS string) AS text", "rand() AS value")
    options = TableLayout(max_rows_per_file=20_000)
    write_table(spark.range(0, rows, 1, 4).selectExpr(*columns), spec, "t", options=options)
    changed = spark.range(rows // 2, rows + rows // 2, 1, 4).selectExpr(*columns)
    staged = write_table(changed, spec, "t", options=options, stage=True, **MODES[mode])

    started = time.perf_counter()
    published = publish_version(spec, "t", number_of(staged))
    took = time.perf_counter() - started

    print(f"\n{mode} of {rows:,} rows in {staged.files} files: published in {took:.2f} s")  # noqa: T201
    assert published.written == rows
    assert took <= 1
