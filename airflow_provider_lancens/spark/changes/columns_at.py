"""The columns of one version as columns of another: by Lance's field ids, or by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.spark.blobs.blob_columns import is_blob
from airflow_provider_lancens.spark.read.table_reader import projected_columns
from airflow_provider_lancens.spark.table.field_ids import IdStability, field_ids, id_stability
from airflow_provider_lancens.spark.types import arrow_schema, spark_schema
from airflow_provider_lancens.spark.write.record_batches import conform

if TYPE_CHECKING:
    from lance import LanceDataset

    from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable


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
        ids = column_ids(newest)
        here = column_ids(dataset)
        if all(here.get(name) == ids[name] for name in schema.names):
            return cls(dataset.version, schema, {name: name for name in schema.names})
        return cls.matching(dataset, ids, schema, id_stability(newest, dataset.version))

    @classmethod
    def matching(
        cls,
        dataset: LanceDataset,
        ids: Mapping[str, int],
        schema: pa.Schema,
        stability: IdStability = IdStability.UNKNOWN,
    ) -> Self:
        """Match columns by the field ids that they are wanted by, and by name.

        A change of a column's type gives it another id, and an overwrite numbers all columns again.

        Args:
            dataset: the opened version.
            ids: the field id of each column of the newest version.
            schema: the wanted columns, as Spark gets them.
            stability: whether an id means the same column in both versions.
        """
        by_id = {field.id(): field.name() for field in _fields(dataset)}
        same = {field.name for field in schema if _has_similar(dataset.schema, field)}
        if stability is IdStability.STABLE:
            same -= {by_id[number] for number in by_id.keys() & ids.values()}  # they have other names now
        found: dict[str, str] = {}
        for name in schema.names:
            renamed = by_id.get(ids[name]) if stability is not IdStability.RENUMBERED else None
            kept = name if name in same else None
            old = (renamed or kept) if stability is IdStability.STABLE else (kept or renamed)
            if old is not None:
                found[name] = old
        return cls(dataset.version, schema, found)

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


def column_ids(dataset: LanceDataset) -> dict[str, int]:
    """Return the field id of each column."""
    return {field.name(): field.id() for field in _fields(dataset)}


def ids_of(dataset: LanceDataset, names: Iterable[str]) -> frozenset[int]:
    """Return the ids of columns and of all fields inside them."""
    wanted = frozenset(names)
    return frozenset(field_ids(field for field in _fields(dataset) if field.name() in wanted))


def _has_similar(schema: pa.Schema, field: pa.Field) -> bool:
    """Return whether a schema has a column of this name, of the field's type or one of the same kind."""
    if field.name not in schema.names:
        return False
    types = (schema.field(field.name).type, field.type)
    return types[0] == types[1] or any(all(map(is_kind, types)) for is_kind in _KINDS)


_KINDS: tuple[Callable[[pa.DataType], bool], ...] = (
    lambda one: pa.types.is_integer(one) or pa.types.is_floating(one) or pa.types.is_decimal(one),
    lambda one: pa.types.is_string(one) or pa.types.is_large_string(one),
    lambda one: pa.types.is_binary(one) or pa.types.is_large_binary(one),
    pa.types.is_timestamp,
    pa.types.is_nested,
)
"""Kinds of types within which values are converted; one that does not fit is an error with the column."""


def _fields(dataset: LanceDataset) -> Iterable[Any]:
    return dataset.lance_schema.fields()


def readable_columns(target: ResolvedTable, newest: LanceDataset, names: Sequence[str] | None) -> pa.Schema:
    """Return the columns to read of changed rows, as Spark gets them.

    Args:
        target: the table.
        newest: the version whose columns they are.
        names: the columns; None reads all.

    Raises:
        TableColumnNotFoundError: (12) there is no such column.
        InvalidInputError: (13) a column contains blobs, or Spark has no type for it.
    """
    schema = projected_columns(target, newest.schema, names)
    if blobs := [field.name for field in schema if is_blob(field.type)]:
        raise spec_errors.InvalidInputError(
            f"table {target.id}: columns: {blobs} contain blobs, which are no part of changes; leave them "
            "out with columns=[...] of read_changes"
        )
    return arrow_schema(spark_schema(schema))
