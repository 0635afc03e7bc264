"""A table that this process writes as Spark's driver and executors do, without Spark."""

from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from airflow_provider_lancens.spark import NamespaceSpec, WriteResult
from airflow_provider_lancens.spark.options import WriteIdentity, WriteRequest, change_of
from airflow_provider_lancens.spark.table.resolved_table import resolved_table
from airflow_provider_lancens.spark.write.row_sources import Written
from airflow_provider_lancens.spark.write.write_context import WriteContext
from airflow_provider_lancens.spark.write.write_rows import write_rows
from airflow_provider_lancens.spark.write.write_task import WriteTask

WAYS: dict[str, tuple[range, dict[str, Any]]] = {
    "upsert": (range(1, 8), {"mode": "upsert", "on": ["id"]}),
    "append": (range(3, 8), {"mode": "append"}),
}
"""Each brings a table of the numbers 0 to 2 to those of 0 to 7."""


@dataclass(frozen=True)
class RowsHere:
    """Rows that this process writes."""

    rows: pa.Table
    time_zone_known: ClassVar[bool] = True

    def schema(self, *_: Any) -> pa.Schema:
        return self.rows.schema

    def write(self, task: WriteTask) -> Written:
        answers = task.run(iter(self.rows.to_batches()))
        return [row for answer in answers for row in answer.to_pylist()]


@dataclass(frozen=True)
class Orders:
    """A table, and how its rows are written and read."""

    spec: NamespaceSpec
    table: str
    way: str

    def write(self, key: str, ids: range, **how: Any) -> WriteResult:
        rows = RowsHere(pa.table({"id": pa.array(ids, pa.int64())}))
        request = WriteRequest(change_of(**{"mode": "append", **how}), WriteIdentity(key, execution_id="1"))
        with resolved_table(self.spec, self.table) as target:
            return write_rows(rows, WriteContext.begin(target, request))

    def bring(self) -> WriteResult:
        """Make the write that is interrupted, or its retry."""
        ids, how = WAYS[self.way]
        return self.write("january", ids, **how)

    @property
    def ids(self) -> list[int]:
        with resolved_table(self.spec, self.table) as target:
            latest = target.open_latest()
            return sorted(latest.to_table()["id"].to_pylist()) if latest else []
