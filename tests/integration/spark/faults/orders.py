"""A table that this process writes to as Spark's driver and executors do, without any Spark."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from airflow_provider_lancens.spark import NamespaceSpec, WriteResult
from airflow_provider_lancens.spark.once import write_once
from airflow_provider_lancens.spark.rows import Written, gathered
from airflow_provider_lancens.spark.target import described
from airflow_provider_lancens.spark.tasks import WriteTask

WAYS: dict[str, tuple[range, dict[str, Any]]] = {
    "upsert": (range(1, 8), {"mode": "upsert", "on": ["id"]}),
    "append": (range(3, 8), {"mode": "append"}),
}
"""Each brings a table of the numbers 0 to 2 to those of 0 to 7."""


@dataclass(frozen=True)
class RowsHere:
    """Rows that this process writes."""

    rows: pa.Table

    def schema(self, *_: Any) -> pa.Schema:
        return self.rows.schema

    def write(self, task: WriteTask) -> Written:
        answers = task.run(iter(self.rows.to_batches()))
        return gathered(row for answer in answers for row in answer.to_pylist())


@dataclass(frozen=True)
class Orders:
    """A table, and how its rows are brought and read."""

    spec: NamespaceSpec
    table: str
    way: str

    def write(self, key: str, ids: range, **how: Any) -> WriteResult:
        rows = RowsHere(pa.table({"id": pa.array(ids, pa.int64())}))
        how = {"mode": "append", "options": None, **how}
        return write_once(rows, self.spec, self.table, idempotency_key=key, **how)

    def bring(self) -> WriteResult:
        """The write that is interrupted, and its retry."""
        ids, how = WAYS[self.way]
        return self.write("january", ids, **how)

    @property
    def ids(self) -> list[int]:
        with described(self.spec, self.table) as target:
            latest = target.open_latest()
            return sorted(latest.to_table()["id"].to_pylist()) if latest else []
