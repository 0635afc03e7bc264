"""Training of what all segments of a vector index share: once, by the driver, on a sample of the table."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.spark.maintenance.index_columns import sub_vectors
from airflow_provider_lancens.spark.maintenance.maintenance_options import METRICS, QUANTIZER_BITS, IndexSpec

if TYPE_CHECKING:
    from lance import LanceDataset

_SAMPLE_RATE = 256
"""Rows sampled per centroid, if there are as many; Lance's default."""
_LEAST_RATE = 2
"""Lance's minimum."""
_ITERATIONS = 50


def train(table: str, dataset: LanceDataset, spec: IndexSpec) -> dict[str, Any]:
    """Train the centroids of the partitions, and the quantizer's codebook if the index has one.

    With the same centroids in all segments, a query searches the same partitions of each.

    Args:
        table: the table's identifier, for the message.
        dataset: the vectors.
        spec: a vector index.

    Returns:
        Arguments for `LanceDataset.create_index_uncommitted`.

    Raises:
        InvalidInputError: (13) there are too few rows for it.
    """
    from lance.indices import IndicesBuilder

    options = dict(spec.options)
    metric = options.pop("metric", METRICS[0])
    iterations = options.pop("max_iterations", _ITERATIONS)
    rows = dataset.count_rows()
    partitions = options.pop("num_partitions", None) or max(1, round(math.sqrt(rows)))
    rate = _sample_rate(table, spec, rows, partitions, "num_partitions")
    builder = IndicesBuilder(dataset, spec.column)
    try:
        ivf = builder.train_ivf(partitions, distance_type=metric, sample_rate=rate, max_iters=iterations)
        shared = {"metric": metric, "num_partitions": partitions, "ivf_centroids": ivf.centroids, **options}
        if not spec.is_quantized:
            return shared
        bits = options.get("num_bits", QUANTIZER_BITS[0])
        parts = sub_vectors(spec, builder.dimension)
        rate = _sample_rate(table, spec, rows, 2**bits, "num_bits")
        pq = builder.train_pq(ivf, parts, sample_rate=rate, max_iters=iterations, num_bits=bits)
    except (RuntimeError, ValueError) as error:  # rows without a vector count as rows until here
        raise InvalidInputError(
            f"table {table}: column {spec.column}: {spec.index_type} cannot be trained on it: {error}"
        ) from error
    return {**shared, "num_sub_vectors": parts, "num_bits": bits, "pq_codebook": pq.codebook}


def _sample_rate(table: str, spec: IndexSpec, rows: int, centers: int, option: str) -> int:
    least = centers * _LEAST_RATE
    if rows < least:
        raise InvalidInputError(
            f"table {table}: {spec.index_type} requires at least {least} rows, but there are "
            f"{rows}; index it later, choose a smaller options[{option!r}], or another index_type, "
            "such as IVF_FLAT"
        )
    return min(_SAMPLE_RATE, rows // centers)
