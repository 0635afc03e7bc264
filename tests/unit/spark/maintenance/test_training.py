from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.spark.maintenance.options import IndexSpec
from airflow_provider_lancens.spark.maintenance.training import train

ROWS, DIMENSION = 300, 16
Vectors = Callable[[int], lance.LanceDataset]


@pytest.fixture
def vectors(tmp_path: Path) -> Vectors:
    """Rows of which only so many have a vector."""

    def make(count: int) -> lance.LanceDataset:
        some = [[(row * n) % 17 / 17 for n in range(1, DIMENSION + 1)] for row in range(count)]
        column = pa.array([*some, *([None] * (ROWS - count))], pa.list_(pa.float32(), DIMENSION))
        return lance.write_dataset(pa.table({"v": column}), str(tmp_path / "t.lance"))

    return make


def test_as_many_partitions_as_the_root_of_the_rows(vectors: Vectors) -> None:
    shared = train("t", vectors(ROWS), IndexSpec("v", "IVF_FLAT"))

    assert (shared["metric"], shared["num_partitions"], len(shared["ivf_centroids"])) == ("l2", 17, 17)


def test_what_is_asked_for_is_handed_on(vectors: Vectors) -> None:
    options = {"metric": "cosine", "num_partitions": 3, "m": 8, "num_sub_vectors": 4, "num_bits": 4}

    shared = train("t", vectors(ROWS), IndexSpec("v", "IVF_HNSW_PQ", options=options))

    assert {name: shared[name] for name in options} == options
    assert len(shared["ivf_centroids"]) == 3


def test_rows_without_a_vector_do_not_stand_in_the_way(vectors: Vectors) -> None:
    assert len(train("t", vectors(100), IndexSpec("v", "IVF_FLAT"))["ivf_centroids"]) == 17


@pytest.mark.parametrize(
    ("index_type", "options", "message"),
    [
        ("IVF_FLAT", {"num_partitions": 151}, r"needs at least 302 rows.*there are 300.*num_partitions"),
        ("IVF_PQ", {}, r"needs at least 512 rows.*there are 300.*options\['num_bits'\]"),
    ],
)
def test_too_few_rows_are_told(
    vectors: Vectors, index_type: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        train("t", vectors(ROWS), IndexSpec("v", index_type, options=options))


def test_the_fewest_rows_that_a_quantizer_may_have_are_enough(vectors: Vectors) -> None:
    options = {"num_bits": 4, "num_partitions": ROWS // 2, "num_sub_vectors": 2}

    assert "pq_codebook" in train("t", vectors(ROWS), IndexSpec("v", "IVF_PQ", options=options))


@pytest.mark.parametrize("count", [0, 10])
def test_too_few_vectors_are_told(vectors: Vectors, count: int) -> None:
    with pytest.raises(
        InvalidInputError, match=f"column v: IVF_FLAT can't be trained on it.*{count} vectors"
    ):
        train("t", vectors(count), IndexSpec("v", "IVF_FLAT"))
