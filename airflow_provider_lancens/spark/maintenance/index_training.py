"""What all segments of a vector index share: trained by the driver on a sample of the table, then reused."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.spark.maintenance.index_columns import sub_vectors
from airflow_provider_lancens.spark.maintenance.maintenance_options import METRICS, QUANTIZER_BITS, IndexSpec

if TYPE_CHECKING:
    from lance import LanceDataset

_SAMPLE_RATE = 256
"""Rows sampled per centroid, if there are as many; Lance's default."""
_LEAST_RATE = 2
"""Lance's minimum."""
_ITERATIONS = 50
_TENSOR_HEADER = 64
"""More bytes than precede the values of a codebook."""


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
    partitions = options.pop("num_partitions", None) or _default_partitions(dataset)
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
        raise spec_errors.InvalidInputError(
            f"table {table}: column {spec.column}: {spec.index_type} cannot be trained on it: {error}"
        ) from error
    return {**shared, "num_sub_vectors": parts, "num_bits": bits, "pq_codebook": pq.codebook}


def trained_before(
    dataset: LanceDataset, storage_options: Mapping[str, str] | None, spec: IndexSpec, present: Any
) -> dict[str, Any] | None:
    """Return what the segments of an existing vector index share, for further segments.

    Args:
        dataset: the vectors.
        storage_options: of their storage.
        spec: the index to build.
        present: the index, as Lance describes it.

    Returns:
        Arguments for `LanceDataset.create_index_uncommitted`; None if the index must be trained again: with
        other options, or since the table has grown to more than four times the rows.
    """
    partitions = dataset.get_ivf_model(spec.name).centroids
    found: dict[str, Any] = {"metric": metric_of(present), "num_partitions": len(partitions)}
    model: dict[str, Any] = {"ivf_centroids": partitions}
    if spec.is_quantized:
        quantizer = _read_quantizer(dataset, storage_options, spec, present)
        if quantizer is None:
            return None
        found |= {name: quantizer[name] for name in ("num_sub_vectors", "num_bits")}
        model["pq_codebook"] = quantizer["pq_codebook"]
    if any(found.get(name, value) != value for name, value in spec.options.items()):
        return None
    if "num_partitions" not in spec.options and _default_partitions(dataset) > 2 * len(partitions):
        return None
    options = {name: value for name, value in spec.options.items() if name != "max_iterations"}
    return {**options, **found, **model}


def metric_of(index: Any) -> str:
    """Return the metric of a vector index, as Lance describes it."""
    return str(index.details["metric_type"]).lower()


def _read_quantizer(
    dataset: LanceDataset, storage_options: Mapping[str, str] | None, spec: IndexSpec, present: Any
) -> dict[str, Any] | None:
    """Return the codebook of the first segment from its file; None if it can't be read."""
    import numpy as np
    import pyarrow as pa
    from lance.file import LanceFileReader

    segment = present.segments[0]
    if segment.base_id is not None:  # in another dataset, which this one was cloned from
        return None
    vectors = dataset.schema.field(spec.column).type
    path = f"{dataset.uri}/_indices/{segment.uuid}/auxiliary.idx"
    file = LanceFileReader(path, storage_options=dict(storage_options or {}))
    metadata = json.loads(json.loads(file.metadata().schema.metadata[b"storage_metadata"])[0])
    tensor = bytes(file.read_global_buffer(metadata["codebook_position"]))
    values = np.frombuffer(tensor, dtype=np.uint8)
    size = 2 ** metadata["nbits"] * metadata["dimension"] * (vectors.value_type.bit_width // 8)
    # The type and the shape precede the values, in a few bytes.
    if metadata["dimension"] != vectors.list_size or not size < len(values) < size + _TENSOR_HEADER:
        return None
    codebook = pa.Array.from_buffers(
        vectors.value_type, size * 8 // vectors.value_type.bit_width, [None, pa.py_buffer(tensor[-size:])]
    )
    return {
        "num_sub_vectors": metadata["num_sub_vectors"],
        "num_bits": metadata["nbits"],
        "pq_codebook": pa.FixedSizeListArray.from_arrays(codebook, vectors.list_size),
    }


def _default_partitions(dataset: LanceDataset) -> int:
    return max(1, round(math.sqrt(dataset.count_rows())))


def _sample_rate(table: str, spec: IndexSpec, rows: int, centroids: int, option: str) -> int:
    least = centroids * _LEAST_RATE
    if rows < least:
        raise spec_errors.InvalidInputError(
            f"table {table}: {spec.index_type} requires at least {least} rows, but there are "
            f"{rows}; index it later, choose a smaller options[{option!r}], or another index_type, "
            "such as IVF_FLAT"
        )
    return min(_SAMPLE_RATE, rows // centroids)
