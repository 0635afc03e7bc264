"""A digest of rows that doesn't depend on their order, nor on how they are divided among tasks.

Epochs of streams are recognized by it: Spark repeats an epoch with the same rows, but not in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from airflow_provider_lancens.spark.table.row_hashes import row_hashes

DIGESTED_COLUMNS = "digest long"
"""The column of the result of `digest_task`, as Spark DDL."""

PREFIX = "rows:"
"""Begins the text of a digest, which other fingerprints don't."""


@dataclass(slots=True)
class RowDigest:
    """The digest of the rows that pass through it; 0 if there are none."""

    value: int = 0

    def over(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches, and add their rows to the digest."""
        for batch in batches:
            self.add(batch)
            yield batch

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows to the digest."""
        hashes = row_hashes(batch.columns, batch.num_rows)
        self.value = _signed(self.value + int(hashes.sum(dtype=np.uint64)))


def digest_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Digest a partition, for Spark's `mapInArrow`; see `DIGESTED_COLUMNS`."""
    digest = RowDigest()
    for batch in batches:
        digest.add(batch)
    yield pa.RecordBatch.from_pydict({"digest": [digest.value]})


def combined_digest(digests: Iterable[int]) -> str:
    """Return the digest of the rows of several tasks, as text."""
    return f"{PREFIX}{sum(digests) % 2**64:016x}"


def _signed(value: int) -> int:
    """Return the lowest 64 bits as Spark's long."""
    return (value + 2**63) % 2**64 - 2**63
