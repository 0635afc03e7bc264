"""Projection of files' rows to rows of the table: columns, filter, casts, names, and stored types."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.conditions import Condition, parse_condition
from airflow_provider_lancens.spark.file_source import FileSource
from airflow_provider_lancens.spark.table.column_fit import fits_column
from airflow_provider_lancens.spark.table.row_casts import conform, irreversible
from airflow_provider_lancens.spark.type_names import parse_type

_AS_SPARK_READS: dict[pa.DataType, pa.DataType] = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.large_string(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.date64(): pa.date32(),
}
_DIGITS = 38
_OF_VIEWS = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
"""Value types of dictionaries that Arrow decodes, by types that it doesn't, such as Polars' categories."""


def plain_type(arrow: pa.DataType, *, as_spark: bool = False) -> pa.DataType:
    """Return a type as a table has it: without extension types, views and runs; what is inside may be null.

    What is inside has the names and the nullability that it has in a DataFrame's columns, so that both can be
    written to one table.

    Args:
        arrow: the type in a file.
        as_spark: whether to return the type in which a DataFrame of the same Parquet file is stored.
            Nanoseconds, times of day, half floats and durations, which Spark doesn't read, stay what they
            are, and so do vectors, which are arrays to Spark.
    """

    def inner(inner_type: pa.DataType) -> pa.DataType:
        return plain_type(inner_type, as_spark=as_spark)

    if isinstance(arrow, pa.BaseExtensionType):
        return plain_type(arrow.storage_type)
    if pa.types.is_run_end_encoded(arrow) or (as_spark and pa.types.is_dictionary(arrow)):
        return inner(arrow.value_type)
    if pa.types.is_nested(arrow):
        return _plain_nested(arrow, inner, as_spark)
    if arrow in (pa.string_view(), pa.binary_view()):
        return pa.string() if arrow == pa.string_view() else pa.binary()
    return _as_spark_reads(arrow) if as_spark else arrow


def stored_schema(columns: pa.Schema, table: pa.Schema | None, kept: Collection[str] = ()) -> pa.Schema:
    """Return columns with the types in which a DataFrame of the same Parquet file is stored.

    Args:
        columns: the columns, of plain types.
        table: the columns of the table: a column that fits one keeps its own type. None without data.
        kept: the columns that keep their types in any case.
    """
    present = {} if table is None else dict(zip(table.names, table.types, strict=True))

    def is_left(field: pa.Field) -> bool:
        return field.name in kept or (field.name in present and fits_column(field.type, present[field.name]))

    return pa.schema(
        [
            field if is_left(field) else field.with_type(plain_type(field.type, as_spark=True))
            for field in columns
        ]
    )


def _plain_nested(
    arrow: pa.DataType, inner: Callable[[pa.DataType], pa.DataType], as_spark: bool
) -> pa.DataType:
    if pa.types.is_map(arrow):
        return pa.map_(inner(arrow.key_type), inner(arrow.item_type))
    if pa.types.is_struct(arrow):
        fields = [arrow.field(index) for index in range(arrow.num_fields)]
        return pa.struct([(field.name, inner(field.type)) for field in fields])
    if pa.types.is_fixed_size_list(arrow):
        return pa.list_(plain_type(arrow.value_type), arrow.list_size)
    if not as_spark and (pa.types.is_large_list(arrow) or pa.types.is_large_list_view(arrow)):
        return pa.large_list(inner(arrow.value_type))
    return pa.list_(inner(arrow.value_type))


def plain_array(column: pa.Array) -> pa.Array:
    """Return an array without what Arrow doesn't cast: extensions, views of lists and in dictionaries, runs.

    Raises:
        ValueError: a view of lists is inside another value.
    """
    arrow = column.type
    if isinstance(arrow, pa.BaseExtensionType):
        return plain_array(column.storage)
    if pa.types.is_run_end_encoded(arrow):
        return plain_array(pc.run_end_decode(column))
    if pa.types.is_dictionary(arrow) and (plain := _OF_VIEWS.get(arrow.value_type)):
        return pa.DictionaryArray.from_arrays(column.indices, column.dictionary.cast(plain))
    if not _is_view(arrow):
        return column
    lengths = pc.fill_null(pc.list_value_length(column), 0).cast(pa.int64())
    ends = pc.cumulative_sum(lengths)
    offsets = pa.concat_arrays([pa.array([0], pa.int64()), ends])
    values = pc.list_flatten(column)
    return pa.LargeListArray.from_arrays(offsets, values, mask=column.is_null())


def inner_views(arrow: pa.DataType) -> bool:
    """Return whether a view of lists is inside a type."""
    fields = [arrow.field(index) for index in range(arrow.num_fields)]
    return any(_is_view(field.type) or inner_views(field.type) for field in fields)


def _is_view(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_list_view(arrow) or pa.types.is_large_list_view(arrow))


def _as_spark_reads(arrow: pa.DataType) -> pa.DataType:
    if pa.types.is_decimal(arrow) and arrow.precision <= _DIGITS:
        return pa.decimal128(arrow.precision, arrow.scale)
    if pa.types.is_timestamp(arrow) and arrow.unit != "ns":
        return pa.timestamp("us", "UTC" if arrow.tz else None)
    if pa.types.is_fixed_size_binary(arrow):
        return pa.binary()
    return _AS_SPARK_READS.get(arrow, arrow)


@dataclass(frozen=True, slots=True)
class Projection:
    """Converts rows of the files to rows of the table."""

    read: Sequence[str]
    """The columns to read: the selected columns, and the columns of the condition."""
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
        columns = [_without_views(column) for column in batch.columns]
        plain = pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
        return plain.filter(self.mask(plain))

    def mask(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """Return which rows of a batch match the condition; all if there is none."""
        if self.condition is None:
            return pa.repeat(pa.scalar(True), batch.num_rows)
        names = sorted(self.condition.columns) or batch.schema.names[:1]
        columns = [_comparable(batch.column(name), self.files.field(name).type) for name in names]
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
    condition = None if source.filter is None else parse_condition(source.filter, plain_schema(files))
    read = {*columns, *(condition.columns if condition else ())}
    in_order = [name for name in files.names if name in read]
    return Projection(in_order, condition, cast, _renamed(cast, source.renames), files)


def _comparable(column: pa.Array, arrow: pa.DataType) -> pa.Array:
    if pa.types.is_null(column.type):  # as in a file without any value of a column, which other files have
        return pa.nulls(len(column), plain_type(arrow))
    return _without_views(column)


def _without_views(column: pa.Array) -> pa.Array:
    """Return an array without views of text or bytes: Arrow selects no rows of these."""
    plain = plain_array(column)
    return plain.cast(plain_type(plain.type)) if _contains_views(plain.type) else plain


def _contains_views(arrow: pa.DataType) -> bool:
    fields = [arrow.field(index) for index in range(arrow.num_fields)]
    is_view = pa.types.is_string_view(arrow) or pa.types.is_binary_view(arrow)
    return is_view or any(_contains_views(field.type) for field in fields)


def plain_schema(columns: pa.Schema) -> pa.Schema:
    """Return columns as a table has them, see `plain_type`."""
    return pa.schema([(field.name, plain_type(field.type)) for field in columns])


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
