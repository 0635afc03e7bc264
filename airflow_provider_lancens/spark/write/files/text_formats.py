"""CSV and JSON: text files, read sequentially in blocks.

Arrow infers types from the first block. It takes whole numbers that are too large for 64 bits for
floating-point ones, makes numbers that are too large or too small for these infinite or zero, and shifts
times with an offset to UTC: all are found here, and the row is named.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json

from airflow_provider_lancens.namespace.row_errors import RowError, first_row
from airflow_provider_lancens.spark.table.row_casts import (
    cast_checked,
    flattened,
    irreversible,
    may_overflow,
)
from airflow_provider_lancens.spark.write.files.formats import (
    NO_ROWS,
    WHOLE,
    FileRowsBatch,
    InspectedFile,
    Open,
    ScanRequest,
)

_BLOCK = 8 * 1024 * 1024
"""Bytes that are parsed together; a row must fit in."""
_EXACT = 2**53
"""Up to here, floating-point numbers represent all whole ones."""
_WHOLE_NUMBER = r"^\s*[+-]?[0-9]+\s*$"
_TINY = re.compile(rb"[:\[,\s]-?\d+(?:\.\d*)?[eE]-0*[1-9]\d|\.0{30}")
"""Numbers of JSON that may be too small for a floating-point one, and then are zero."""
_PERHAPS_NULL_ROW = re.compile(rb"(?:\A|[}l])\s*null")
"""Finds where a row follows another one and is null, and text that looks like this."""
_TEXT_OR_NULL = re.compile(rb'"(?:[^"\\]|\\.)*"|[:,\[]\s*null|null')
"""Divides a block so that ``null`` alone is a row, rather than text or a value inside a row."""


@dataclass(frozen=True, slots=True)
class Csv:
    """A file is one piece. An empty value is null; in quotes it is the empty string."""

    delimiter: str
    header: bool
    schema: pa.Schema | None

    def inspect(self, opened: Open) -> InspectedFile:
        """See `formats.FileFormat.inspect`: types that weren't given are inferred from the first block."""
        try:
            with opened() as file:
                found = self._open(file, self.schema, None).schema
        except pa.ArrowInvalid:
            with opened() as file:
                if not file.read(_BLOCK).strip():
                    return NO_ROWS
            if self.schema is not None:
                self._check_texts(opened, ScanRequest(self.schema.names, self.schema, None))
            raise
        missing = [name for name in (self.schema or found).names if name not in found.names]
        if missing:
            raise ValueError(f"columns {', '.join(missing)} are missing")
        if self.schema is None and (other := [field.name for field in found if field.type == pa.binary()]):
            raise ValueError(
                f"column {', '.join(other)}: text that isn't UTF-8; convert the file, or give the type "
                "binary by schema"
            )
        return InspectedFile(self.schema or found, [WHOLE])

    def read(self, opened: Open, numbers: Sequence[int], wanted: ScanRequest) -> Iterator[FileRowsBatch]:
        """See `formats.FileFormat.read`."""
        for _ in numbers:
            start = 0
            # Arrow makes 1e400 infinite and 1e-400 zero, decimals overflow, and it doesn't tell.
            schema = pa.schema([_with_fractions_as_text(field) for field in wanted.schema])
            try:
                with opened() as file:
                    for batch in self._open(file, schema, wanted.columns):
                        try:
                            yield FileRowsBatch(self._with_fractions(batch, wanted.schema), start)
                        except RowError as error:
                            raise error.at(start) from None
                        start += batch.num_rows
            except pa.ArrowInvalid:
                self._check_texts(opened, wanted)  # which names the row
                raise

    def _check_texts(self, opened: Open, wanted: ScanRequest) -> None:
        """Read the file as text, and check that each value fits its column.

        Raises:
            RowError: one doesn't.
        """
        texts = pa.schema([field.with_type(pa.string()) for field in wanted.schema])
        start = 0
        with opened() as file:
            for batch in self._open(file, texts, wanted.columns):
                for name in batch.schema.names:
                    column, arrow = batch.column(name), wanted.schema.field(name).type
                    if irreversible(column.type, arrow):
                        continue  # Arrow reads it, but from files alone
                    try:
                        self._from_text(column, arrow, name)
                    except RowError as error:
                        raise error.at(start) from None
                start += batch.num_rows

    def _with_fractions(self, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        fields = [schema.field(name) for name in batch.schema.names]
        columns = [
            column if column.type == field.type else self._from_text(column, field.type, field.name)
            for column, field in zip(batch.columns, fields, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))

    def _from_text(self, texts: pa.Array, arrow: pa.DataType, name: str) -> pa.Array:
        if pa.types.is_integer(arrow) or pa.types.is_floating(arrow) or pa.types.is_decimal(arrow):
            texts = pc.utf8_trim(texts, " \t")  # as Arrow's reader does
        cast = cast_checked(texts, arrow, name)
        if self.schema is None and _is_large(cast):
            _check_whole_numbers(texts, cast, name)
        return cast

    def _open(
        self, file: pa.NativeFile, schema: pa.Schema | None, columns: Sequence[str] | None
    ) -> pa.csv.CSVStreamingReader:
        return pa.csv.open_csv(
            file,
            pa.csv.ReadOptions(
                block_size=_BLOCK, column_names=None if self.header or schema is None else schema.names
            ),
            pa.csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            pa.csv.ConvertOptions(
                column_types=schema,
                include_columns=columns,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )


@dataclass(frozen=True, slots=True)
class Json:
    """A file is one piece. A field that a row lacks is null.

    Fields that aren't in the schema are refused, or ignored if the schema was given.
    """

    schema: pa.Schema | None

    def inspect(self, opened: Open) -> InspectedFile:
        """See `formats.FileFormat.inspect`."""
        if self.schema is not None:
            return InspectedFile(self.schema, [WHOLE])
        with opened() as file:
            block = next(_blocks(file), None)
        if block is None:
            return NO_ROWS
        try:
            return InspectedFile(self._inferred(block), [WHOLE])
        except pa.ArrowInvalid:
            if before := _lines(block)[: self._first_invalid(block, None)]:
                self._checked_rows(block, self._inferred(b"\n".join(before)))  # names the row
            raise

    def read(self, opened: Open, numbers: Sequence[int], wanted: ScanRequest) -> Iterator[FileRowsBatch]:
        """See `formats.FileFormat.read`."""
        for _ in numbers:
            start = 0
            with opened() as file:
                for block in _blocks(file):
                    try:
                        rows = self._checked_rows(block, wanted.schema)
                    except RowError as error:
                        raise error.at(start) from None
                    except pa.ArrowInvalid as error:
                        line = self._first_invalid(block, wanted.schema)
                        raise ValueError(f"row {start + line + 1}: {error}") from error
                    yield FileRowsBatch(rows.select(list(wanted.columns)), start)
                    start += rows.num_rows

    def _inferred(self, block: bytes) -> pa.Schema:
        found = self._parsed(block, None).schema
        times = [field.name for field in found if _has_times(field.type)]
        if not times:
            return found
        # Arrow shifts a time with an offset to UTC, and doesn't tell.
        texts = self._parsed(block, _as_texts(found))
        zoned = {name: _with_zones(found.field(name).type) for name in times}
        return pa.schema(
            [
                field.with_type(zoned[field.name])
                if field.name in zoned and _fits(texts[field.name], zoned[field.name])
                else field
                for field in found
            ]
        )

    def _checked_rows(self, block: bytes, schema: pa.Schema) -> pa.RecordBatch:
        try:
            rows = self._rows(block, schema)
        except pa.ArrowInvalid:
            with suppress(json.JSONDecodeError):
                _check_numbers(block, schema, inferred=self.schema is None)
            raise
        if any(map(_is_large, rows.columns)) or (any(map(_has_zeros, rows.columns)) and _TINY.search(block)):
            _check_numbers(block, schema, inferred=self.schema is None)
        elif (long := _long_decimal(schema)) is not None and long.search(block):
            _check_numbers(block, schema, inferred=self.schema is None, only=long)
        return rows

    def _rows(self, block: bytes, schema: pa.Schema) -> pa.RecordBatch:
        parsed = self._parsed(block, _as_texts(schema)).combine_chunks()
        batches = parsed.to_batches() or [pa.RecordBatch.from_pylist([], schema=parsed.schema)]
        columns = [
            column if column.type == field.type else _from_text(column, field)
            for column, field in zip(batches[0].select(schema.names).columns, schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def _parsed(self, block: bytes, schema: pa.Schema | None) -> pa.Table:
        unexpected = "infer" if schema is None else "error" if self.schema is None else "ignore"
        rows = _without_null_rows(block.removeprefix(codecs.BOM_UTF8)) + b"\n"  # Arrow refuses no text
        return pa.json.read_json(
            pa.BufferReader(rows),
            pa.json.ReadOptions(block_size=len(rows), use_threads=False),
            pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior=unexpected),
        )

    def _first_invalid(self, block: bytes, schema: pa.Schema | None) -> int:
        def fails(part: pa.Array) -> bool:
            rows = b"\n".join(part.to_pylist())
            try:
                self._parsed(rows, None) if schema is None else self._rows(rows, schema)
            except (pa.ArrowInvalid, RowError):
                return True
            return False

        return first_row(pa.array(_lines(block), pa.large_binary()), fails)


def _lines(block: bytes) -> list[bytes]:
    return [line for line in block.split(b"\n") if line.strip()]


def _without_null_rows(block: bytes) -> bytes:
    """Return JSON with ``{}`` for each row that is null.

    Such a row ends the process in Arrow if a column is a struct or its type isn't known yet.
    """
    if _PERHAPS_NULL_ROW.search(block) is None:
        return block
    return _TEXT_OR_NULL.sub(lambda found: b"{}" if found[0] == b"null" else found[0], block)


def _from_text(column: pa.Array, field: pa.Field) -> pa.Array:
    if not pa.types.is_time(field.type):
        return cast_checked(column, field.type, field.name)
    # Arrow converts text to no time of day, but to the times of a day.
    times = pc.binary_join_element_wise("1970-01-01T", column, "")
    return cast_checked(times, pa.timestamp(field.type.unit), field.name).cast(field.type)


def _blocks(file: pa.NativeFile) -> Iterator[bytes]:
    """Yield the file in blocks of whole lines; the last line belongs to the last block."""
    rest, part = b"", file.read(_BLOCK)
    while part:
        following = file.read(_BLOCK)
        whole, newline, rest = (rest + part).rpartition(b"\n")
        if not newline and len(rest) > _BLOCK:
            raise ValueError(f"a row has more than {_BLOCK} bytes")
        if not following:
            whole += newline + rest
        if whole.strip():
            yield whole
        part = following


def _as_texts(schema: pa.Schema) -> pa.Schema:
    """Return a schema with dates and times as text: from text Arrow converts them without shifting any."""
    return pa.schema([field.with_type(_mapped(field.type, _is_time, pa.string())) for field in schema])


def _with_zones(arrow: pa.DataType) -> pa.DataType:
    return _mapped(arrow, pa.types.is_timestamp, pa.timestamp("us", "UTC"))


def _is_time(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(arrow) or pa.types.is_date(arrow) or pa.types.is_time(arrow))


def _has_times(arrow: pa.DataType) -> bool:
    return bool(_mapped(arrow, _is_time, pa.string()) != arrow)


def _mapped(arrow: pa.DataType, chosen: Callable[[Any], bool], other: pa.DataType) -> pa.DataType:
    """Return a type with another one for the chosen ones inside it."""
    if pa.types.is_struct(arrow):
        fields = [arrow.field(index) for index in range(arrow.num_fields)]
        return pa.struct([field.with_type(_mapped(field.type, chosen, other)) for field in fields])
    if pa.types.is_list(arrow):
        return pa.list_(_mapped(arrow.value_type, chosen, other))
    if pa.types.is_fixed_size_list(arrow):
        return pa.list_(_mapped(arrow.value_type, chosen, other), arrow.list_size)
    return other if chosen(arrow) else arrow


def _fits(column: pa.ChunkedArray, arrow: pa.DataType) -> bool:
    try:
        column.cast(arrow)
    except pa.ArrowInvalid:
        return False
    return True


def _with_fractions_as_text(field: pa.Field) -> pa.Field:
    has_fractions = pa.types.is_floating(field.type) or pa.types.is_decimal(field.type)
    is_told = has_fractions and not irreversible(pa.string(), field.type)
    return field.with_type(pa.string()) if is_told else field


def _is_large(array: pa.Array) -> bool:
    """Return whether a number is so large that text may have been converted with loss."""
    if pa.types.is_floating(array.type):
        extreme = pc.max(pc.abs(array.cast(pa.float64()))).as_py()
        return bool(extreme is not None and extreme >= _EXACT)
    return any(_is_large(inner) for inner in flattened(array))


def _decimals(types: Iterable[pa.DataType]) -> set[pa.DataType]:
    """Return the types of decimals among types and inside them."""
    found: set[pa.DataType] = set()
    for arrow in types:
        if pa.types.is_decimal(arrow):
            found.add(arrow)
        found |= _decimals(arrow.field(index).type for index in range(arrow.num_fields))
    return found


def _long_decimal(schema: pa.Schema) -> re.Pattern[bytes] | None:
    """Return a pattern of the numbers of JSON that Arrow may take for other decimals; None without any.

    It matches complete numbers, also in quotes, so that hardly any other text is parsed again.
    """
    patterns = sorted({may_overflow(arrow) for arrow in _decimals(schema.types)})
    if not patterns:
        return None
    digits = rf"(?=[0-9.]*(?:{'|'.join(patterns)}))[0-9.]+(?:[eE][+-]?[0-9]+)?"
    return re.compile(rf'[:\[,]\s*"?\s*[+-]?{digits}\s*[",\]}}]'.encode())


def _has_zeros(array: pa.Array) -> bool:
    if pa.types.is_floating(array.type):
        return bool(pc.any(pc.equal(array.cast(pa.float64()), 0.0), min_count=0).as_py())
    return any(_has_zeros(inner) for inner in flattened(array))


class _Number(float):
    """A floating-point number with the text that it was read from."""

    def __init__(self, text: str) -> None:
        self.text = text

    def fits(self, arrow: pa.DataType) -> bool:
        """Return whether it is neither too large nor too small for a type."""
        stored = pa.scalar(float(self)).cast(arrow).cast(pa.float64()).as_py()
        if stored == 0:
            return not re.match("[^eE]*[1-9]", self.text)
        return stored not in (float("inf"), float("-inf"))


def _check_whole_numbers(texts: pa.Array, numbers: pa.Array, name: str) -> None:
    large = pc.greater_equal(pc.abs(numbers.cast(pa.float64())), float(_EXACT))
    whole = pc.match_substring_regex(texts, _WHOLE_NUMBER)
    for row in pc.indices_nonzero(pc.fill_null(pc.and_(large, whole), False)).to_pylist():
        if not _is_exact(int(texts[row].as_py())):
            raise RowError(row, name, _inexact(texts[row].as_py()))


def _is_exact(number: int) -> bool:
    return bool(-(2**63) <= number < 2**63 and int(float(number)) == number)


def _in_range(number: int, arrow: pa.DataType) -> bool:
    signed = bool(pa.types.is_signed_integer(arrow))
    bits = int(arrow.bit_width) - signed
    least = -(2**bits) if signed else 0
    return bool(least <= number < 2**bits)


def _lost_decimal(value: Any, arrow: pa.DataType) -> str | None:
    text = value.text if isinstance(value, _Number) else str(value)
    try:
        number = Decimal(text).normalize(Context(prec=len(text)))
    except ArithmeticError:  # Arrow has refused what is no number
        return None
    exponent = number.as_tuple().exponent
    fits = isinstance(exponent, int) and -exponent <= arrow.scale
    if not number or (fits and number.adjusted() < arrow.precision - arrow.scale):
        return None
    return f"{text}: it does not fit into {arrow} without loss"


def _inexact(text: object) -> str:
    return (
        f"{text}: the whole number is too large for int64, or beside fractions for double; give the column's "
        "type by schema, such as decimal(38, 0), or double to round"
    )


def _check_numbers(
    block: bytes, schema: pa.Schema, *, inferred: bool, only: re.Pattern[bytes] | None = None
) -> None:
    for row, line in enumerate(_lines(block)):
        if only is not None and only.search(line) is None:
            continue
        values = json.loads(line, parse_float=_Number) or {}  # a row may be null
        for field in schema:
            if reason := _lost_number(values.get(field.name), field.type, inferred):
                raise RowError(row, field.name, reason)


def _lost_number(value: Any, arrow: pa.DataType, inferred: bool) -> str | None:
    """Return what is wrong with a value of JSON as a number of a type."""
    if pa.types.is_decimal(arrow) and value is not None:
        return _lost_decimal(value, arrow)
    inner: list[tuple[Any, pa.DataType]] = []
    if isinstance(value, dict) and pa.types.is_struct(arrow):
        fields = [arrow.field(index) for index in range(arrow.num_fields)]
        inner = [(value.get(field.name), field.type) for field in fields]
    elif isinstance(value, list) and pa.types.is_nested(arrow):
        inner = [(each, arrow.value_type) for each in value]
    elif isinstance(value, int | float) and pa.types.is_floating(arrow):
        if inferred and isinstance(value, int) and not _is_exact(value):
            return _inexact(value)
        number = value if isinstance(value, _Number) else _Number(str(value))
        if not number.fits(arrow):
            return f"{number.text}: it does not fit into {arrow} without loss"
    elif isinstance(value, int) and pa.types.is_integer(arrow) and not _in_range(value, arrow):
        return _inexact(value) if inferred else f"{value}: it does not fit into {arrow}"
    return next((reason for each, kind in inner if (reason := _lost_number(each, kind, inferred))), None)
