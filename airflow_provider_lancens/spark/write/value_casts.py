"""Casts of values that lose nothing in silence: each value fits the new type, or its row is named.

Arrow's own checks leave gaps: a number too large for a float becomes infinite, one too small zero, a
timestamp loses its time of day as a date, any number is true. A cast to a floating-point type rounds to the
nearest number, as in SQL.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_lancens.namespace.row_errors import RowError, first_row

_INFINITE_TEXT = r"^\s*[+-]?(?i:inf(inity)?)\s*$"
_ZERO_TEXT = r"^[^1-9eE]*([eE].*)?$"
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
        widens: whether the new type is known to represent all values, but for those that Arrow checks.

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
    """Return the values that are directly inside those of an array; none if they aren't nested."""
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
    """Return whether a cast lost a value; an ArrowException means that it can't be told, so that it may."""
    if source.type == cast.type or pa.types.is_null(source.type):
        return False
    inner, inner_cast = flattened(source), flattened(cast)
    if inner:
        if pa.types.is_struct(source.type):
            names = [cast.type.field(i).name for i in range(cast.type.num_fields)]
            found = [names.index(source.type.field(i).name) for i in range(source.type.num_fields)]
            inner_cast = [inner_cast[index] for index in found]
        return any(_loses(one, other) for one, other in zip(inner, inner_cast, strict=True))
    if _is_text(source.type):
        return pa.types.is_floating(cast.type) and _loses_text(source, cast)
    if _is_text(cast.type) or _is_bytes(cast.type):
        return False  # written out in full
    if pa.types.is_floating(source.type) and pa.types.is_floating(cast.type):
        return _leaves_range(source, cast)
    return not _same(source, _back(cast, source.type))


def _back(cast: pa.Array, source: pa.DataType) -> pa.Array:
    if pa.types.is_floating(cast.type) and pa.types.is_decimal(source):
        # As a number is written: the digits of a decimal are those, not the binary fraction's.
        wide = pa.decimal256(76, max(source.scale, 0))
        return cast.cast(pa.string()).cast(wide).cast(source)
    return cast.cast(source)


def _same(one: pa.Array, other: pa.Array) -> bool:
    equal = pc.equal(one, other)
    if pa.types.is_floating(one.type):
        equal = pc.or_(equal, pc.and_(pc.is_nan(one), pc.is_nan(other)))
    return one.null_count == other.null_count and pc.all(equal, min_count=0).as_py() is not False


def _leaves_range(source: pa.Array, cast: pa.Array) -> bool:
    source, cast = source.cast(pa.float64()), cast.cast(pa.float64())
    infinite = pc.and_(pc.is_inf(cast), pc.invert(pc.is_inf(source)))
    vanished = pc.and_(pc.equal(cast, 0.0), pc.not_equal(source, 0.0))
    return bool(pc.any(pc.or_(infinite, vanished), min_count=0).as_py())


def _loses_text(source: pa.Array, cast: pa.Array) -> bool:
    cast = cast.cast(pa.float64())
    return _is_made(pc.is_inf(cast), source, _INFINITE_TEXT) or _is_made(
        pc.equal(cast, 0.0), source, _ZERO_TEXT
    )


def _is_made(chosen: pa.Array, source: pa.Array, said: str) -> bool:
    """Return whether one of the chosen values isn't what its text says, by a pattern."""
    texts = source.cast(pa.string()).filter(chosen)
    return len(texts) > 0 and not pc.all(pc.match_substring_regex(texts, said), min_count=0).as_py()


def _is_text(arrow: pa.DataType) -> bool:
    return arrow in (pa.string(), pa.large_string(), pa.string_view())


def _is_bytes(arrow: Any) -> bool:
    return arrow in (pa.binary(), pa.large_binary(), pa.binary_view()) or pa.types.is_fixed_size_binary(arrow)
