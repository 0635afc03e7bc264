"""The columns of one version, read as those of another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.spark.blobs.blob_columns import is_blob
from airflow_provider_lancens.spark.read.table_reader import projected_columns
from airflow_provider_lancens.spark.table.column_history import MatchedColumns
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
    def of(cls, table: str, version: int, schema: pa.Schema, match: MatchedColumns | None = None) -> Self:
        """Take columns that were matched.

        Args:
            table: identifier of the table, for messages.
            version: the version to read.
            schema: the columns to return, as Spark gets them.
            match: where they are in this version; None if all have their own names.

        Raises:
            TableVersionNotFoundError: (11) it is unknown which columns of this version they are.
        """
        if match is None:
            return cls(version, schema, {name: name for name in schema.names})
        if unknown := sorted(match.unknown & set(schema.names)):
            raise spec_errors.TableVersionNotFoundError(
                f"table {table}: it is unknown which columns of version {version} were {unknown}: columns "
                "were renamed, replaced or dropped since, and a version in between was cleaned up; leave "
                "them out, or read the whole table"
            )
        return cls(version, schema, {one: match.names[one] for one in schema.names if one in match.names})

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
