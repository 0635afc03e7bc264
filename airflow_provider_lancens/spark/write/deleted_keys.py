"""The keys that an upsert deletes: from a DataFrame on the executors to the driver, as Arrow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from airflow_provider_lancens.spark.write.record_batches import conform, without_empty

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class _KeyTask:
    """Encode the keys of a partition. Picklable."""

    schema: pa.Schema

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in conform(without_empty(batches), self.schema):
            encoded = batch.serialize().to_pybytes()
            yield pa.RecordBatch.from_pydict({"keys": pa.array([encoded], pa.binary())})


def collect_keys(keys: DataFrame, schema: pa.Schema) -> pa.Table:
    """Return keys with the types that the table has.

    Args:
        keys: the key columns.
        schema: their types.
    """
    rows = keys.mapInArrow(_KeyTask(schema).run, "keys binary").collect()
    batches = [pa.ipc.read_record_batch(pa.py_buffer(bytes(row["keys"])), schema) for row in rows]
    return pa.Table.from_batches(batches, schema)
