"""A hundredth of new rows: what it takes to index them alone, and what the index then finds."""

from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance_namespace import DeclareTableRequest
from pyspark.sql import SparkSession

from airflow_provider_lancens.spark import IndexResult, NamespaceSpec
from airflow_provider_lancens.spark.maintenance import measure_recall
from tests.support.benchmark_sizes import SCALE
from tests.support.indices import build_index

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

ROWS, DIMENSION, CLUSTERS = int(1_000_000 * SCALE), 128, 1000
FRAGMENTS = 20


def clustered(rows: int, seed: int) -> pa.Table:
    """Vectors around centers, as embeddings are."""
    centers = np.random.default_rng(0).normal(size=(CLUSTERS, DIMENSION)).astype(np.float32)
    random = np.random.default_rng(seed)
    noise = random.normal(scale=0.7, size=(rows, DIMENSION)).astype(np.float32)
    values = centers[random.integers(CLUSTERS, size=rows)] + noise
    return pa.table({"v": pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), DIMENSION)})


@pytest.mark.parametrize("index_type", ["IVF_PQ", "IVF_FLAT"])
def test_an_index_is_refreshed_at_the_cost_of_the_new_rows(
    spark: SparkSession, tmp_path: Path, index_type: str
) -> None:
    spec = NamespaceSpec("dir", {"root": str(tmp_path)})
    spec.connect().declare_table(DeclareTableRequest(id=["t"]))
    lance.write_dataset(clustered(ROWS, 1), tmp_path / "t.lance", max_rows_per_file=ROWS // FRAGMENTS)
    spark.range(10).count()  # Spark is up

    def build(if_exists: Any) -> IndexResult:
        return build_index(spark, spec, "t", "v", index_type, if_exists=if_exists)

    def recall() -> float:
        return measure_recall(spec, "t", "v", queries=200, k=10, nprobes=30, refine_factor=5)

    built = build("fail")
    lance.write_dataset(clustered(ROWS // 100, 2), tmp_path / "t.lance", mode="append")
    extended = build("extend")
    recalls = [recall()]
    build("replace")
    recalls.append(recall())

    print(  # noqa: T201 for the one who measures
        f"\n{index_type}, {ROWS:,} rows: built in {built.seconds:.1f} s, extended in "
        f"{extended.seconds:.1f} s ({extended.seconds / built.seconds:.1%}), recall@10 "
        f"{recalls[0]:.3f} extended, {recalls[1]:.3f} rebuilt"
    )
    assert extended.rows == ROWS + ROWS // 100
    assert extended.seconds <= 0.05 * built.seconds
    assert recalls[0] >= recalls[1] - 0.01
