"""A version of a table as DuckDB reads it: batch by batch, only the columns and rows that a query needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as pads

from airflow_provider_lancens.spark.blobs import is_blob, is_old_blob

if TYPE_CHECKING:
    from lance import LanceDataset

_PLAIN = (
    pa.types.is_null,
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_float32,
    pa.types.is_float64,
    pa.types.is_decimal128,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
    pa.types.is_date,
    pa.types.is_time,
    pa.types.is_timestamp,
    pa.types.is_duration,
)
_DECIMAL_DIGITS = 38


class TableScan(pads.Dataset):  # type: ignore[misc]
    """What is registered with DuckDB, which asks it for columns and rows each time a query reads the table.

    Attributes:
        schema: the columns, without columns whose type SQL can't read.
        unreadable: the columns whose type SQL can't read.
        failure: the first error of reading, since DuckDB reports only its text.
    """

    def __init__(self, dataset: LanceDataset, failures: Callable[[], AbstractContextManager[None]]) -> None:
        # Without the constructor of the class, as in Lance's own dataset: Arrow reads no files.
        self._dataset = dataset
        self._failures = failures
        self._schema = pa.schema([field for column in dataset.schema if (field := _readable_field(column))])
        self.unreadable = [name for name in dataset.schema.names if name not in self._schema.names]
        self.failure: Exception | None = None

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self._schema

    def scanner(
        self,
        columns: Sequence[str] | None = None,
        filter: Any = None,  # noqa: A002 Arrow's name, by which DuckDB passes it
        **_: Any,
    ) -> _Scan:
        """Return a scan, which reads when its rows are fetched.

        Args:
            columns: the columns, in this order.
            filter: an expression of Arrow; only rows for which it is true are read.
        """
        return _Scan(self, list(columns) if columns else self._schema.names, filter)

    def batches(self, columns: list[str], condition: Any) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a scan."""
        try:
            with self._failures():
                schema = pa.schema([self._schema.field(name) for name in columns])
                yield from (_converted(batch, schema) for batch in self._read(columns, condition))
        except Exception as error:
            self.failure = self.failure or error
            raise

    def _read(self, columns: list[str], condition: Any) -> Iterator[pa.RecordBatch]:
        if condition is None:
            return iter(self._dataset.scanner(columns=columns).to_reader())
        if (filtered := self._filtered(columns, condition)) is not None:
            return iter(filtered)
        # The text of an expression has the names of its columns: others in it are read for nothing.
        text = str(condition)
        named = [name for name in self._schema.names if name in columns or name in text]
        schema = pa.schema([self._schema.field(name) for name in named])
        rows = (_converted(batch, schema) for batch in self._dataset.scanner(columns=named).to_reader())
        reader = pa.RecordBatchReader.from_batches(schema, rows)
        return iter(pads.Scanner.from_batches(reader, columns=columns, filter=condition).to_reader())

    def _filtered(self, columns: list[str], condition: Any) -> pa.RecordBatchReader | None:
        """Let Lance filter the rows, which uses its indices; None if it can't evaluate the expression."""
        try:
            scanner = self._dataset.scanner(columns=columns, filter=condition)
            scanner.explain_plan()
        except (NotImplementedError, ValueError, OSError):  # a failure of the storage comes again without it
            return None
        return scanner.to_reader()


class _Scan:
    """Columns and rows of a `TableScan`; DuckDB calls `to_reader`."""

    def __init__(self, table: TableScan, columns: list[str], condition: Any) -> None:
        self.table = table
        self.columns = columns
        self.condition = condition

    def to_reader(self) -> pa.RecordBatchReader:
        schema = pa.schema([self.table.schema.field(name) for name in self.columns])
        return pa.RecordBatchReader.from_batches(schema, self.table.batches(self.columns, self.condition))


def readable(arrow: pa.DataType) -> pa.DataType | None:
    """Return the type as which DuckDB reads a type; None if it can't."""
    if is_blob(arrow) or pa.types.is_run_end_encoded(arrow):
        return None
    if isinstance(arrow, pa.BaseExtensionType):
        return readable(arrow.storage_type)
    if pa.types.is_float16(arrow):
        return pa.float32()
    if pa.types.is_decimal256(arrow):
        fits = arrow.precision <= _DECIMAL_DIGITS
        return pa.decimal128(arrow.precision, arrow.scale) if fits else None
    if pa.types.is_string_view(arrow) or pa.types.is_binary_view(arrow):
        return pa.string() if pa.types.is_string_view(arrow) else pa.binary()
    if any(is_plain(arrow) for is_plain in _PLAIN):
        return arrow
    return _nested(arrow)


def _nested(arrow: pa.DataType) -> pa.DataType | None:
    if pa.types.is_struct(arrow):
        fields = [_readable_field(field) for field in arrow]
        return pa.struct(fields) if all(fields) else None
    if pa.types.is_dictionary(arrow):
        return readable(arrow.value_type)
    if pa.types.is_map(arrow):
        key, item = readable(arrow.key_type), readable(arrow.item_type)
        return pa.map_(key, item) if key is not None and item is not None else None
    if not (pa.types.is_list(arrow) or pa.types.is_large_list(arrow) or pa.types.is_fixed_size_list(arrow)):
        return None
    value = readable(arrow.value_type)
    if value is None:
        return None
    if pa.types.is_fixed_size_list(arrow):
        return pa.list_(value, arrow.list_size)
    return pa.large_list(value) if pa.types.is_large_list(arrow) else pa.list_(value)


def _readable_field(field: pa.Field) -> pa.Field | None:
    arrow = None if is_old_blob(field) else readable(field.type)
    return None if arrow is None else pa.field(field.name, arrow)


def _converted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [_as(batch.column(field.name), field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _as(column: pa.Array, arrow: pa.DataType) -> pa.Array:
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    return column if column.type == arrow else column.cast(arrow)
