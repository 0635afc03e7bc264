from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.spark.maintenance.index import train
from airflow_provider_lancens.spark.maintenance.maintenance_options import IndexSpec

ROWS, DIMENSION = 300, 16
Vectors = Callable[[int], lance.LanceDataset]


@pytest.fixture
def vectors(tmp_path: Path) -> Vectors:
    """Rows of which only this many have a vector."""

    def make(count: int) -> lance.LanceDataset:
        some = [[(row * n) % 17 / 17 for n in range(1, DIMENSION + 1)] for row in range(count)]
        column = pa.array([*some, *([None] * (ROWS - count))], pa.list_(pa.float32(), DIMENSION))
        return lance.write_dataset(pa.table({"v": column}), str(tmp_path / "t.lance"))

    return make


def test_the_default_number_of_partitions_is_the_square_root_of_the_rows(vectors: Vectors) -> None:
    shared = train("t", vectors(ROWS), IndexSpec("v", "IVF_FLAT"))

    assert (shared["metric"], shared["num_partitions"], len(shared["ivf_centroids"])) == ("l2", 17, 17)


def test_explicit_parameters_are_passed_on(vectors: Vectors) -> None:
    options = {"metric": "cosine", "num_partitions": 3, "m": 8, "num_sub_vectors": 4, "num_bits": 4}

    shared = train("t", vectors(ROWS), IndexSpec("v", "IVF_HNSW_PQ", options=options))

    assert {name: shared[name] for name in options} == options
    assert len(shared["ivf_centroids"]) == 3


def test_null_vectors_are_skipped(vectors: Vectors) -> None:
    assert len(train("t", vectors(100), IndexSpec("v", "IVF_FLAT"))["ivf_centroids"]) == 17


@pytest.mark.parametrize(
    ("index_type", "options", "message"),
    [
        ("IVF_FLAT", {"num_partitions": 151}, r"requires at least 302 rows.*there are 300.*num_partitions"),
        ("IVF_PQ", {}, r"requires at least 512 rows.*there are 300.*options\['num_bits'\]"),
    ],
)
def test_too_few_rows_are_reported(
    vectors: Vectors, index_type: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        train("t", vectors(ROWS), IndexSpec("v", index_type, options=options))


def test_the_minimum_number_of_rows_for_a_quantizer_is_accepted(vectors: Vectors) -> None:
    options = {"num_bits": 4, "num_partitions": ROWS // 2, "num_sub_vectors": 2}

    assert "pq_codebook" in train("t", vectors(ROWS), IndexSpec("v", "IVF_PQ", options=options))


@pytest.mark.parametrize("count", [0, 10])
def test_too_few_vectors_are_reported(vectors: Vectors, count: int) -> None:
    with pytest.raises(
        InvalidInputError, match=f"column v: IVF_FLAT cannot be trained on it.*{count} vectors"
    ):
        train("t", vectors(count), IndexSpec("v", "IVF_FLAT"))
