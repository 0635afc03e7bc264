"""Reads of the data source: groups of fragments of one version, one partition each."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from airflow_provider_lancens.conditions import all_of
from airflow_provider_lancens.spark.datasource.filters import condition_of

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_provider_lancens.spark.write.executor_tasks import ReadTask

_PUSHDOWN = "pyspark.sql.worker.data_source_pushdown_filters"


class LanceReader(DataSourceReader):
    """Reads a task's groups."""

    def __init__(self, task: ReadTask) -> None:
        """Take the task that `plan_read` returned."""
        self.task = task

    def partitions(self) -> list[InputPartition]:
        """Return a partition per group; None stands for a table of no rows, as Spark needs at least one."""
        return [InputPartition(number) for number in range(len(self.task.groups))] or [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition, on an executor."""
        return iter(()) if partition.value is None else self.task.read(partition.value)


class FilteringReader(LanceReader):
    """Also pushes Spark's filters down to Lance."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Take the filters that mean the same to Lance; yields the others."""
        held = self.task.dataset.open(self.task.version).schema
        conditions = {index: condition_of(one, held) for index, one in enumerate(filters)}
        if taken := [condition for condition in conditions.values() if condition is not None]:
            own = [] if self.task.filter is None else [f"({self.task.filter})"]
            together = " AND ".join([*own, all_of(taken).lance_sql])
            self.task = dataclasses.replace(self.task, filter=together)
        return [filters[index] for index, condition in conditions.items() if condition is None]


def reader_class() -> type[LanceReader]:
    """Return the reader class that this process can use.

    Spark fails every read by a reader that takes filters, unless its configuration
    ``spark.sql.python.filterPushdown.enabled`` is set, which a data source cannot read; but then it
    plans reads in a process of another module.
    """
    return FilteringReader if _PUSHDOWN in sys.modules else LanceReader
