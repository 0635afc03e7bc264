"""The columns of one version as columns of another: by Lance's field ids, which outlast renaming."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from airflow_provider_lancens.spark.commit.table_changes import field_ids
from airflow_provider_lancens.spark.write.record_batches import conform

if TYPE_CHECKING:
    from lance import LanceDataset


@dataclass(frozen=True, slots=True)
class ColumnsAt:
    """What to read of a version so that its rows have the columns of the newest version of a range."""

    version: int
    schema: pa.Schema
    """The columns to return."""
    names: Mapping[str, str]
    """The name in this version of each column that it has; the others are null."""

    @classmethod
    def of(cls, dataset: LanceDataset, newest: LanceDataset, schema: pa.Schema) -> Self:
        """Match columns.

        Args:
            dataset: the opened version.
            newest: the version with the columns that are wanted.
            schema: those columns, as Spark gets them.
        """
        here = {field.id(): field.name() for field in _fields(dataset)}
        there = {field.name(): field.id() for field in _fields(newest)}
        found = {name: here.get(there[name]) for name in schema.names}
        return cls(dataset.version, schema, {name: old for name, old in found.items() if old is not None})

    @property
    def stored(self) -> list[str]:
        """The names to read of this version."""
        return list(self.names.values())

    def batches(self, read: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield rows with the wanted columns; further columns of the batches are left out."""
        yield from conform((self._renamed(batch) for batch in read), self.schema, cut_times=True)

    def _renamed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [
            batch.column(self.names[field.name])
            if field.name in self.names
            else pa.nulls(batch.num_rows, field.type)
            for field in self.schema
        ]
        return pa.RecordBatch.from_arrays(columns, names=self.schema.names)


def ids_of(dataset: LanceDataset, names: Iterable[str]) -> frozenset[int]:
    """Return the ids of columns and of all fields inside them."""
    wanted = frozenset(names)
    return frozenset(field_ids(field for field in _fields(dataset) if field.name() in wanted))


def _fields(dataset: LanceDataset) -> Iterable[Any]:
    return dataset.lance_schema.fields()
