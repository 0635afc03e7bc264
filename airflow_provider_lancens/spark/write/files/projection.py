"""Projection of the files' rows to those of the table: columns, filter, casts, names. Picklable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.conditions import Condition, parse_condition
from airflow_provider_lancens.spark.file_source import FileSource
from airflow_provider_lancens.spark.type_names import parse_type
from airflow_provider_lancens.spark.write.files.stored_types import inner_views, plain_array, plain_type
from airflow_provider_lancens.spark.write.record_batches import conform
from airflow_provider_lancens.spark.write.schema_check import fits_column
from airflow_provider_lancens.spark.write.value_casts import irreversible


@dataclass(frozen=True, slots=True)
class Projection:
    """Converts rows of the files to rows of the table."""

    read: Sequence[str]
    """The columns to read: the selected ones, and those of the condition."""
    condition: Condition | None
    cast: pa.Schema
    """The selected columns with the files' names and their new types."""
    schema: pa.Schema
    """The same with their new names."""
    files: pa.Schema
    """All columns of the files."""

    def apply(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Filter and convert the rows.

        Raises:
            RowError: a value can't be cast.
        """
        for batch in conform(map(self._plain, batches), self.cast):
            yield pa.RecordBatch.from_arrays(batch.columns, schema=self.schema)

    def matching(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of a batch that match the condition."""
        if self.condition is None:
            return batch
        return batch.filter(self.mask(batch))

    def mask(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """Return which rows of a batch match the condition; all if there is none."""
        if self.condition is None:
            return pa.repeat(pa.scalar(True), batch.num_rows)
        names = sorted(self.condition.columns) or batch.schema.names[:1]
        columns = [_comparable(batch.column(name)) for name in names]
        return self.condition.mask(pa.RecordBatch.from_arrays(columns, names=names))

    @property
    def pruning(self) -> pc.Expression | None:
        """An expression by which Arrow may skip parts of files."""
        compared = (
            [] if self.condition is None else [self.files.field(name).type for name in self.condition.columns]
        )
        if self.condition is None:
            return None
        compared = [self.files.field(name).type for name in self.condition.columns]
        if any(arrow != plain_type(arrow) for arrow in compared):
            return None
        return self.condition.pruning()

    def _plain(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [plain_array(batch.column(name)) for name in self.cast.names]
        return pa.RecordBatch.from_arrays(columns, names=self.cast.names)


def projection_of(source: FileSource, files: pa.Schema) -> Projection:
    """Return the projection of a source for files of this schema.

    Raises:
        TableColumnNotFoundError: (12) it names a column that the files don't have.
        InvalidInputError: (13) a type or the filter is invalid.
    """
    columns = list(files.names if source.columns is None else source.columns)
    _check_columns({"columns": columns, "renames": source.renames, "casts": source.casts}, files)
    types = {name: _cast_type(files.field(name), text) for name, text in source.casts.items()}
    for name in columns:
        if inner_views(files.field(name).type):
            raise spec_errors.InvalidInputError(
                f"column {name}: it is {files.field(name).type}: views of lists inside another value "
                "can't be read; leave it out by columns"
            )
    cast = pa.schema([(name, types.get(name, plain_type(files.field(name).type))) for name in columns])
    condition = None if source.filter is None else parse_condition(source.filter, _plain_schema(files))
    read = {*columns, *(condition.columns if condition else ())}
    in_order = [name for name in files.names if name in read]
    return Projection(in_order, condition, cast, _renamed(cast, source.renames), files)


def _comparable(column: pa.Array) -> pa.Array:
    plain, wanted = plain_array(column), plain_type(column.type)
    return plain.cast(wanted) if wanted in (pa.string(), pa.binary()) else plain


def _plain_schema(files: pa.Schema) -> pa.Schema:
    return pa.schema([(field.name, plain_type(field.type)) for field in files])


def _cast_type(column: pa.Field, text: str) -> pa.DataType:
    argument = f"casts[{column.name!r}]"
    wanted = parse_type(text, argument)
    found = plain_type(column.type)
    found = found.value_type if pa.types.is_dictionary(found) else found
    if not fits_column(found, wanted) and (reason := irreversible(found, wanted)):
        raise spec_errors.InvalidInputError(f"{argument}: {found} can't be cast to {wanted}: {reason}")
    return wanted


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
