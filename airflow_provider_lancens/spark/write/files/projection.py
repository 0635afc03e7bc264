"""Projection of the files' rows to those of the table: columns, filter, casts, names. Picklable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.spark.file_source import FileSource
from airflow_provider_lancens.spark.type_names import parse_type
from airflow_provider_lancens.spark.write.files.sql_predicate import SqlPredicate, parse_predicate
from airflow_provider_lancens.spark.write.record_batches import conform


@dataclass(frozen=True, slots=True)
class Projection:
    """Converts rows of the files to rows of the table."""

    read: Sequence[str]
    """The columns to read: the selected ones, and those of the condition."""
    condition: SqlPredicate | None
    cast: pa.Schema
    """The selected columns with the files' names and their new types."""
    schema: pa.Schema
    """The same with their new names."""

    def apply(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Filter and convert the rows.

        Raises:
            ValueError: a value can't be cast; the message names the column.
        """
        if self.condition is not None:
            batches = _filtered(batches, self.condition)
        for batch in conform(batches, self.cast):
            yield pa.RecordBatch.from_arrays(batch.columns, schema=self.schema)


def projection_of(source: FileSource, files: pa.Schema) -> Projection:
    """Return the projection of a source for files of this schema.

    Raises:
        TableColumnNotFoundError: (12) it names a column that the files don't have.
        InvalidInputError: (13) a type or the filter is invalid.
    """
    columns = list(files.names if source.columns is None else source.columns)
    _check_columns({"columns": columns, "renames": source.renames, "casts": source.casts}, files)
    types = {name: parse_type(text, f"casts[{name!r}]") for name, text in source.casts.items()}
    cast = pa.schema([(name, types.get(name, _stored(files.field(name).type))) for name in columns])
    condition = None if source.filter is None else parse_predicate(source.filter, files)
    read = {*columns, *(condition.columns if condition else ())}
    in_order = [name for name in files.names if name in read]
    return Projection(in_order, condition, cast, _renamed(cast, source.renames))


def _filtered(batches: Iterable[pa.RecordBatch], condition: SqlPredicate) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield from pa.Table.from_batches([batch]).filter(condition.expression).to_batches()


def _check_columns(named: Mapping[str, Iterable[str]], files: pa.Schema) -> None:
    present = frozenset(files.names)
    for argument, names in named.items():
        missing = [name for name in names if name not in present]
        if missing:
            raise spec_errors.TableColumnNotFoundError(
                f"{argument}: the files have no {', '.join(missing)}; they have {', '.join(files.names)}"
            )


def _renamed(schema: pa.Schema, names: Mapping[str, str]) -> pa.Schema:
    renamed = [names.get(name, name) for name in schema.names]
    return pa.schema(list(zip(renamed, schema.types, strict=True)))


def _stored(arrow: pa.DataType) -> pa.DataType:
    return arrow.storage_type if isinstance(arrow, pa.BaseExtensionType) else arrow
