"""What happens to the rows of the files on their way: columns, filter, casts, names. It pickles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from lance_namespace.errors import InvalidInputError, TableColumnNotFoundError

from airflow_provider_lancens.spark.batches import conform
from airflow_provider_lancens.spark.files.conditions import Condition, parse_condition
from airflow_provider_lancens.spark.files.source import FileSource
from airflow_provider_lancens.spark.files.types import parse_type


@dataclass(frozen=True, slots=True)
class Shape:
    """How rows of the files become rows of the table."""

    read: Sequence[str]
    """The columns to read: the wanted ones, and those of the condition."""
    condition: Condition | None
    cast: pa.Schema
    """The wanted columns under the files' names, in their new types."""
    schema: pa.Schema
    """The same under their new names."""

    def apply(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows that are wanted, as they are wanted.

        Raises:
            ValueError: a value can't be cast; the message names the column.
        """
        if self.condition is not None:
            batches = _filtered(batches, self.condition)
        for batch in conform(batches, self.cast):
            yield pa.RecordBatch.from_arrays(batch.columns, schema=self.schema)


def shape_of(source: FileSource, files: pa.Schema) -> Shape:
    """What a source asks for, on files of this schema.

    Raises:
        TableColumnNotFoundError: (12) it names a column that the files don't have.
        InvalidInputError: (13) a type or the filter can't be understood, or two columns get one name.
    """
    columns = list(files.names if source.columns is None else source.columns)
    _check_columns({"columns": columns, "renames": source.renames, "casts": source.casts}, files)
    types = {name: parse_type(words, f"casts[{name!r}]") for name, words in source.casts.items()}
    cast = pa.schema([(name, types.get(name, _stored(files.field(name).type))) for name in columns])
    condition = None if source.filter is None else parse_condition(source.filter, files)
    read = {*columns, *(condition.columns if condition else ())}
    in_order = [name for name in files.names if name in read]
    return Shape(in_order, condition, cast, _renamed(cast, source.renames))


def _filtered(batches: Iterable[pa.RecordBatch], condition: Condition) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield from pa.Table.from_batches([batch]).filter(condition.expression).to_batches()


def _check_columns(named: Mapping[str, Iterable[str]], files: pa.Schema) -> None:
    for argument, names in named.items():
        missing = [name for name in names if name not in files.names]
        if missing:
            raise TableColumnNotFoundError(
                f"{argument}: the files have no {', '.join(missing)}; they have {', '.join(files.names)}"
            )


def _renamed(schema: pa.Schema, names: Mapping[str, str]) -> pa.Schema:
    renamed = [names.get(name, name) for name in schema.names]
    for index, name in enumerate(renamed):
        if name in renamed[:index]:
            raise InvalidInputError(f"column {name}: two columns would get this name; rename one")
        if not name or "." in name:
            raise InvalidInputError(f"column {name!r}: Lance takes no empty name and no '.'; rename it")
    return pa.schema(list(zip(renamed, schema.types, strict=True)))


def _stored(arrow: pa.DataType) -> pa.DataType:
    return arrow.storage_type if isinstance(arrow, pa.BaseExtensionType) else arrow
