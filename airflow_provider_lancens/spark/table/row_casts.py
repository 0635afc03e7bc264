"""Rows as a table stores them: types, alignment, and casts that lose no value without an error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_lancens.namespace.arrow_memory import aligned, copied
from airflow_provider_lancens.namespace.row_errors import (
    RowError,
    check_text,
    contains_text,
    first_row,
    rows_from,
)
from airflow_provider_lancens.spark.blobs import blob_array, is_blob
from airflow_provider_lancens.spark.table.column_fit import ColumnMatch, fits_column

_WITH_OFFSETS = frozenset({pa.string(), pa.large_string(), pa.binary(), pa.large_binary()})
_INFINITE_TEXT = r"^\s*[+-]?(?i:inf(inity)?)\s*$"
_ZERO_TEXT = r"^[^1-9eE]*([eE].*)?$"
_HEXADECIMAL = r"^\s*[+-]?0[xX]"
_DECIMAL_DIGITS = {32: 9, 64: 18, 128: 38, 256: 76}
"""The digits that always fit into the integer of a decimal, by its bits."""
_SHOWN = 80
"""Maximum length of a value in a message."""


def irreversible(source: pa.DataType, target: pa.DataType) -> str | None:
    """Return why no value of a type can be cast to another one without loss; None if some can."""
    if lacking := _lacking_fields(source, target):
        return f"it would drop {', '.join(lacking)}"
    try:
        empty = pa.nulls(0, source)
        _loses(empty, empty.cast(target))
    except pa.ArrowException as error:
        return str(error)
    return None


def cast_checked(column: pa.Array, target: pa.DataType, name: str, *, widens: bool = False) -> pa.Array:
    """Cast a column.

    Args:
        column: the values.
        target: their new type.
        name: the column's name, for the message.
        widens: whether the new type is known to represent all values, except values that Arrow checks.

    Raises:
        RowError: a value doesn't fit.
    """

    def fails(part: pa.Array) -> bool:
        try:
            cast = part.cast(target)
            return not widens and _loses(part, cast)
        except pa.ArrowException:
            return True

    try:
        cast = column.cast(target)
        if widens or not _loses(column, cast):
            return cast
        reason = f"it does not fit into {target} without loss"
    except pa.ArrowException as error:
        reason = f"cannot convert {column.type} to {target}: {error}"
    row = first_row(column, fails)
    raise RowError(row, name, f"{shown(column[row])}: {reason}")


def shown(value: pa.Scalar) -> str:
    """Return a value for a message, which may be cut."""
    try:
        text = repr(value.as_py()) if pa.types.is_nested(value.type) else str(value.cast(pa.string()))
    except (pa.ArrowException, ValueError, OverflowError):
        text = str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def flattened(array: pa.Array) -> list[pa.Array]:
    """Return the values that are directly inside an array's values; none if these aren't nested."""
    arrow = array.type
    if pa.types.is_map(arrow):
        entries = pa.struct([("key", arrow.key_type), ("value", arrow.item_type)])
        return flattened(pc.list_flatten(array.cast(pa.list_(entries))))
    if pa.types.is_struct(arrow):
        valid = array.drop_null()
        return [valid.field(index) for index in range(arrow.num_fields)]
    return [pc.list_flatten(array)] if is_list(arrow) else []


def is_list(arrow: pa.DataType) -> bool:
    """Return whether a type is an array of any kind."""
    kinds = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(kind(arrow) for kind in kinds)


def _lacking_fields(source: pa.DataType, target: pa.DataType, path: str = "") -> list[str]:
    if pa.types.is_struct(source) and pa.types.is_struct(target):
        fields = {target.field(i).name: target.field(i).type for i in range(target.num_fields)}
        found = [source.field(i) for i in range(source.num_fields)]
        lacking = [f"{path}{each.name}" for each in found if each.name not in fields]
        for each in found:
            if each.name in fields:
                lacking += _lacking_fields(each.type, fields[each.name], f"{path}{each.name}.")
        return lacking
    if is_list(source) and is_list(target):
        return _lacking_fields(source.value_type, target.value_type, f"{path}[].")
    return []


def _loses(source: pa.Array, cast: pa.Array) -> bool:
    """Return whether a cast lost a value; an ArrowException means that it may have."""
    if source.type == cast.type or pa.types.is_null(source.type):
        return False
    inner, inner_cast = flattened(source), flattened(cast)
    if inner:
        if pa.types.is_struct(source.type):
            names = [cast.type.field(i).name for i in range(cast.type.num_fields)]
            found = [names.index(source.type.field(i).name) for i in range(source.type.num_fields)]
            inner_cast = [inner_cast[index] for index in found]
        return any(_loses(values, values_cast) for values, values_cast in zip(inner, inner_cast, strict=True))
    if _is_text(source.type):
        return _loses_text(source.cast(pa.string()), cast)
    if _is_text(cast.type) or _is_bytes(cast.type):
        return False  # written out in full
    if pa.types.is_floating(source.type) and pa.types.is_floating(cast.type):
        return _leaves_range(source, cast)
    return not _same(source, _back(cast, source.type))


def _back(cast: pa.Array, source: pa.DataType) -> pa.Array:
    if pa.types.is_floating(cast.type) and pa.types.is_decimal(source):
        # A decimal has the digits of the number as it is written, not of the binary fraction.
        wide = pa.decimal256(76, max(source.scale, 0))
        return cast.cast(pa.string()).cast(wide).cast(source)
    return cast.cast(source)


def _same(left: pa.Array, right: pa.Array) -> bool:
    equal = pc.equal(left, right)
    if pa.types.is_floating(left.type):
        equal = pc.or_(equal, pc.and_(pc.is_nan(left), pc.is_nan(right)))
    return left.null_count == right.null_count and pc.all(equal, min_count=0).as_py() is not False


def _leaves_range(source: pa.Array, cast: pa.Array) -> bool:
    source, cast = source.cast(pa.float64()), cast.cast(pa.float64())
    infinite = pc.and_(pc.is_inf(cast), pc.invert(pc.is_inf(source)))
    vanished = pc.and_(pc.equal(cast, 0.0), pc.not_equal(source, 0.0))
    return bool(pc.any(pc.or_(infinite, vanished), min_count=0).as_py())


def _loses_text(texts: pa.Array, cast: pa.Array) -> bool:
    if pa.types.is_integer(cast.type):
        # Arrow takes these for the bits of a number: 0xFF is -1 as int8.
        return bool(pc.any(pc.match_substring_regex(texts, _HEXADECIMAL), min_count=0).as_py())
    if pa.types.is_decimal(cast.type):
        return _overflows(texts, cast)
    if not pa.types.is_floating(cast.type):
        return False
    cast = cast.cast(pa.float64())
    return _is_made(pc.is_inf(cast), texts, _INFINITE_TEXT) or _is_made(
        pc.equal(cast, 0.0), texts, _ZERO_TEXT
    )


def _is_made(chosen: pa.Array, texts: pa.Array, said: str) -> bool:
    """Return whether one of the chosen values isn't what its text says, by a pattern."""
    texts = texts.filter(chosen)
    return len(texts) > 0 and not pc.all(pc.match_substring_regex(texts, said), min_count=0).as_py()


def may_overflow(arrow: pa.DataType) -> str:
    """Return a pattern of text that Arrow may convert to another decimal, whose integer overflows unnoticed.

    A number is right if all of its digits and the zeros that the type's scale adds fit into the integer.
    """
    digits = _DECIMAL_DIGITS[arrow.bit_width]
    run = max(1, min(digits + 1 - arrow.scale, digits // 2 + 1))
    return rf"[0-9.][eE]|[0-9]{{{run}}}"


def _overflows(texts: pa.Array, cast: pa.Array) -> bool:
    chosen = pc.match_substring_regex(texts, may_overflow(cast.type))
    pairs = zip(texts.filter(chosen).to_pylist(), cast.filter(chosen).to_pylist(), strict=True)
    return any(Decimal(text) != number for text, number in pairs)


def _is_text(arrow: pa.DataType) -> bool:
    return arrow in (pa.string(), pa.large_string(), pa.string_view())


def _is_bytes(arrow: Any) -> bool:
    return arrow in (pa.binary(), pa.large_binary(), pa.binary_view()) or pa.types.is_fixed_size_binary(arrow)


def conform(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, cut_times: bool = False, conformed: bool = False
) -> Iterator[pa.RecordBatch]:
    """Yield the batches with exactly these columns, in this order, of these types.

    Args:
        batches: batches that have at least these columns.
        schema: the columns.
        cut_times: whether to truncate times to their new unit; if not, finer times don't fit.
        conformed: whether the batches come from another `conform`, which has checked and aligned the values
            whose type stays the same.

    Raises:
        RowError: a value doesn't fit.
    """
    start = 0
    for batch in batches:
        with rows_from(start):
            columns = [_column(batch.column(field.name), field, cut_times, conformed) for field in schema]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)
        start += batch.num_rows


def merged(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, match: ColumnMatch, conformed: bool = False
) -> Iterator[pa.RecordBatch]:
    """Yield the batches with exactly these columns, null where they lack one or a nested field of it.

    Args:
        batches: the batches.
        schema: the columns of the table; all fields that the batches lack are nullable.
        match: where the columns are in the batches; fields of structs are matched by name.
        conformed: see `conform`.

    Raises:
        RowError: a value doesn't fit.
    """
    start = 0
    for batch in batches:
        with rows_from(start):
            columns = [_merged_column(batch, field, match, conformed) for field in schema]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)
        start += batch.num_rows


def converted(batch: pa.RecordBatch, schema: pa.Schema, match: ColumnMatch | None) -> pa.RecordBatch:
    """Return a batch with exactly these columns, null where it lacks one, whatever `match` says.

    Args:
        batch: the batch.
        schema: the columns.
        match: where they are in the batch; None if it has them by the same names.

    Raises:
        RowError: a value doesn't fit.
    """
    present = batch.schema.names

    def column(field: pa.Field) -> pa.Array:
        source = field.name if match is None else match.sources.get(field.name)
        if source not in present:
            return pa.nulls(batch.num_rows, field.type)
        found = batch.column(source)
        if match is not None:
            found = _by_name(found, field.type, match.match_case)
        return _column(found, field, cut_times=False)

    return pa.RecordBatch.from_arrays([column(field) for field in schema], schema=schema)


def uncut(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch as Lance can write it.

    It fails at a part of an array of structs if these contain structs, or booleans some of which are null.
    """
    if not any(map(_is_cut, batch.columns)):
        return batch
    columns = [copied(column) if _is_cut(column) else column for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def uncut_files(batches: Iterable[pa.RecordBatch], rows_of_file: int) -> Iterator[pa.RecordBatch]:
    """Yield batches as Lance can write them, which itself writes parts of a batch that two files share."""
    room = rows_of_file
    for batch in batches:
        start = 0
        while start < batch.num_rows:
            part = batch.slice(start, room)
            start += part.num_rows
            room = room - part.num_rows or rows_of_file
            yield uncut(part)


def _is_cut(array: pa.Array, part: bool = False) -> bool:
    arrow = array.type
    part = part or array.offset > 0
    if pa.types.is_struct(arrow):
        inner = [array.field(index) for index in range(arrow.num_fields)]
        if any(
            pa.types.is_boolean(each.type) and (part or each.offset) and each.null_count for each in inner
        ):
            return True
    elif pa.types.is_map(arrow):
        inner = [array.keys, array.items]
    else:
        inner = [array.values] if is_list(arrow) else []
    keeps_offset = pa.types.is_struct(arrow) or pa.types.is_fixed_size_list(arrow)
    if keeps_offset and array.offset and any(pa.types.is_struct(each.type) for each in inner):
        return True
    has_offsets = inner and not keeps_offset and len(array)
    part = part or bool(has_offsets and array.offsets[0].as_py())
    return any(_is_cut(each, part) for each in inner)


def check_no_nulls(column: pa.Array, name: str) -> None:
    """Check that a column has no null.

    Raises:
        RowError: it has.
    """
    if column.null_count:
        raise RowError(first_row(column, _has_nulls), name, "the table does not allow nulls here")


def without_empty(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return the batches that have rows."""
    return (batch for batch in batches if batch.num_rows)


def _column(column: pa.Array, field: pa.Field, cut_times: bool, conformed: bool = False) -> pa.Array:
    if not field.nullable:
        check_no_nulls(column, field.name)
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if is_blob(field.type):
        return blob_array(column, field.name)
    if pa.types.is_dictionary(column.type) and not pa.types.is_dictionary(field.type):
        column = column.dictionary_decode()  # Arrow casts values more widely than dictionaries of them
    if column.type != field.type:
        column, conformed = _cast(column, field, cut_times), False
    if _requires_values(field.type):
        _check_values(column, field)
    return column if conformed else _checked(column, field, cut_times)


def _checked(column: pa.Array, field: pa.Field, cut_times: bool) -> pa.Array:
    if not cut_times and contains_text(field.type):
        check_text(column, field.name)
    return copied(column) if _lacks_offsets(column) else aligned(column)


def _cast(column: pa.Array, field: pa.Field, cut_times: bool) -> pa.Array:
    if column.null_count == len(column):
        # Also because Arrow crashes when casting only nulls to vectors: Spark sends no values for them.
        return pa.nulls(len(column), field.type)
    if not cut_times:
        widens = fits_column(column.type, field.type)
        return cast_checked(column, field.type, field.name, widens=widens)
    try:
        # pyarrow 18 itself casts no struct to one with other fields.
        named = _by_name(column, field.type, match_case=True)
        return named.cast(options=pc.CastOptions(field.type, allow_time_truncate=True))
    except pa.ArrowException as error:
        raise ValueError(
            f"column {field.name}: cannot convert {column.type} to {field.type}: {error}"
        ) from error


def _has_nulls(column: pa.Array) -> bool:
    return bool(column.null_count)


def _requires_values(arrow: pa.DataType) -> bool:
    """Return whether a field inside a type doesn't allow nulls."""
    fields = [arrow.field(index) for index in range(arrow.num_fields)]
    if pa.types.is_map(arrow):
        fields = [arrow.item_field]  # keys never are null
    return any(not field.nullable or _requires_values(field.type) for field in fields)


def _check_values(column: pa.Array, field: pa.Field) -> None:
    """Check that there are no nulls inside a column where its type doesn't allow them: Arrow casts them."""

    def fails(part: pa.Array) -> bool:
        return _lacks_values(part, field.type)

    if fails(column):
        row = first_row(column, fails)
        raise RowError(row, field.name, f"{shown(column[row])}: the table does not allow nulls inside")


def _lacks_values(array: pa.Array, arrow: pa.DataType) -> bool:
    inner = flattened(array)
    if pa.types.is_map(arrow):
        fields = [arrow.key_field, arrow.item_field]
    elif is_list(arrow):
        fields = [arrow.value_field]
    else:
        fields = [arrow.field(index) for index in range(arrow.num_fields)]
    return any(
        (not field.nullable and bool(values.null_count)) or _lacks_values(values, field.type)
        for values, field in zip(inner, fields, strict=True)
    )


def _merged_column(batch: pa.RecordBatch, field: pa.Field, match: ColumnMatch, conformed: bool) -> pa.Array:
    if field.name not in match.sources:
        return pa.nulls(batch.num_rows, field.type)
    column = batch.column(match.sources[field.name])
    found = _by_name(column, field.type, match.match_case)
    return _column(found, field, cut_times=False, conformed=conformed)


def _by_name(column: pa.Array, arrow: pa.DataType, match_case: bool) -> pa.Array:
    """Return a column with the fields of its structs in the order of a type, null where it lacks one."""
    if pa.types.is_struct(column.type) and pa.types.is_struct(arrow):
        names = [column.type.field(i).name for i in range(column.type.num_fields)]
        positions = {name if match_case else name.lower(): i for i, name in enumerate(names)}
        fields = [arrow.field(i) for i in range(arrow.num_fields)]
        found = [positions.get(field.name if match_case else field.name.lower()) for field in fields]
        children = [
            pa.nulls(len(column), field.type)
            if i is None
            else _by_name(column.field(i), field.type, match_case)
            for i, field in zip(found, fields, strict=True)
        ]
        named = [
            field.with_type(child.type).with_nullable(True)
            for field, child in zip(fields, children, strict=True)
        ]
        return pa.StructArray.from_arrays(children, fields=named, mask=column.is_null())
    if _is_list(column.type) and _is_list(arrow) and _contains_structs(arrow):
        kind = pa.LargeListArray if pa.types.is_large_list(column.type) else pa.ListArray
        values = _by_name(column.values, arrow.value_type, match_case)
        # Arrow takes a mask only with offsets that aren't a slice.
        return kind.from_arrays(copied(column.offsets), values, mask=column.is_null())
    return column


def _is_list(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_list(arrow) or pa.types.is_large_list(arrow))


def _contains_structs(arrow: pa.DataType) -> bool:
    return pa.types.is_struct(arrow) or (_is_list(arrow) and _contains_structs(arrow.value_type))


def _lacks_offsets(array: pa.Array) -> bool:
    """Return whether an array or an inner one has no offsets, which Spark 3.5 leaves out if it has no values.

    Lance would read what follows in memory.
    """
    arrow = array.type
    if (arrow in _WITH_OFFSETS or _is_list(arrow) or pa.types.is_map(arrow)) and not array.buffers()[1]:
        return True
    if pa.types.is_map(arrow):
        return _lacks_offsets(array.keys) or _lacks_offsets(array.items)
    if is_list(arrow):
        return _lacks_offsets(array.values)
    return pa.types.is_struct(arrow) and any(
        _lacks_offsets(array.field(index)) for index in range(arrow.num_fields)
    )
