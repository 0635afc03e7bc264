"""Columns whose values are in the names of folders, such as ``day=2026-11-01``: as Spark reads them.

Only folders below the given path count, or for a pattern those below its fixed part. The types are inferred
from all values as Spark does; a value of ``__HIVE_DEFAULT_PARTITION__`` is null.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple
from urllib.parse import unquote
from zoneinfo import ZoneInfo

import pyarrow as pa

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.spark.type_names import parse_type
from airflow_provider_lancens.spark.write.files.file_system import SourceFile

_NULL = "__HIVE_DEFAULT_PARTITION__"
_INTEGER = re.compile(r"-?[0-9]+")
_DECIMAL = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_REAL = re.compile(rf"\s*(-?(?:NaN|Infinity|{_DECIMAL}))[dDfF]?\s*")
"""As Java reads a double: with spaces around it, and with the suffix of a literal."""
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9])?")
"""Spark takes a longer fraction for text."""
_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])([0-9]{1,2})(?::?([0-9]{2}))?")
_MOMENT = pa.timestamp("us", "UTC")
_DIGITS = 38

Values = tuple[Any, ...]
"""The values of a file's rows, of all partition columns in their order."""


class Partitions(NamedTuple):
    """The partition columns of files."""

    columns: pa.Schema
    values: Mapping[str, Values]
    """By the files' locations; none if there are no such columns."""


NO_PARTITIONS = Partitions(pa.schema([]), {})


def partitions_of(
    files: Sequence[SourceFile], types: Mapping[str, str], zone: str, argument: str = "partitions"
) -> Partitions:
    """Return the columns in the names of the files' folders.

    Args:
        files: the files.
        types: names of types by column; those of others are inferred.
        zone: the time zone of times, the session's.
        argument: the name of the argument `types`, for messages.

    Raises:
        TableColumnNotFoundError: (12) a type is given of a column that isn't in the folders' names.
        InvalidInputError: (13) the files' folders have different columns, or a value doesn't fit its type.
    """
    texts = {file.location: _texts(file) for file in files}
    names = _common_names(texts)
    given = {name: parse_type(text, f"{argument}[{name!r}]") for name, text in types.items()}
    if missing := [name for name in given if name not in names]:
        raise spec_errors.TableColumnNotFoundError(
            f"{argument}: no folder of the files names {', '.join(missing)}; "
            f"they name: {', '.join(names) or 'no column'}"
        )
    columns = []
    converted = []
    for name in names:
        found = [values[name] for values in texts.values()]
        column = given.get(name) or _common_type([text for text in found if text is not None])
        columns.append(pa.field(name, column))
        read = {text: None if text is None else _value(text, column, zone, name) for text in set(found)}
        converted.append([read[text] for text in found])
    rows = zip(*converted, strict=True) if names else iter(())
    return Partitions(pa.schema(columns), dict(zip(texts, rows, strict=False)))


def _texts(file: SourceFile) -> dict[str, str | None]:
    folders = file.location.removeprefix(file.base).strip("/").split("/")[:-1]
    found: dict[str, str | None] = {}
    ended = False
    for folder in reversed(folders):
        name, sign, text = folder.partition("=")
        if not sign:
            ended = bool(found)
            continue
        name, text = unquote(name), unquote(text)
        if not name or not text:
            raise _unreadable(file, f"folder {folder!r}: expected a name and a value")
        if ended:
            raise _unreadable(file, f"folder {folder!r} is above one that names no column")
        if name in found:
            raise _unreadable(file, f"two folders name {name}")
        found[name] = None if text == _NULL else text
    return dict(reversed(found.items()))


def _common_names(texts: Mapping[str, Mapping[str, str | None]]) -> list[str]:
    first = next(iter(texts), None)
    for location, values in texts.items():
        if first is not None and list(values) != list(texts[first]):
            raise spec_errors.InvalidInputError(
                f"file {location}: its folders name {_listed(values)}, but those of {first} name "
                f"{_listed(texts[first])}; write them separately, or pass partitions=False to read "
                "only the files"
            )
    return [] if first is None else list(texts[first])


def _listed(values: Mapping[str, str | None]) -> str:
    return f"the columns {', '.join(values)}" if values else "no column"


def _unreadable(file: SourceFile, reason: str) -> spec_errors.InvalidInputError:
    return spec_errors.InvalidInputError(
        f"file {file.location}: {reason}; pass partitions=False to read only the files"
    )


def _common_type(texts: Sequence[str]) -> pa.DataType:
    kinds = {_inferred(text) for text in texts}
    if not kinds:
        return pa.null()  # no folder has a value
    common = kinds.pop()
    for kind in kinds:
        common = _wider(common, kind)
    return common


def _inferred(text: str) -> pa.DataType:
    if _INTEGER.fullmatch(text) and -(2**63) <= int(text) < 2**63:
        return pa.int32() if -(2**31) <= int(text) < 2**31 else pa.int64()
    if (digits := _whole_digits(text)) is not None:
        return pa.decimal128(digits, 0)
    if _REAL.fullmatch(text):
        return pa.float64()
    for pattern, arrow in ((_TIME, _MOMENT), (_DATE, pa.date32())):
        if pattern.fullmatch(text) and _is_time(text):
            return arrow
    return pa.string()


def _whole_digits(text: str) -> int | None:
    """Return the number of digits of a whole number; None if it is another one, or has too many."""
    try:
        exponent = (
            Decimal(text).as_tuple().exponent if _REAL.fullmatch(text) and text == text.strip() else "n"
        )
    except InvalidOperation:
        return None
    if not isinstance(exponent, int) or exponent < 0 or exponent > _DIGITS:
        return None
    digits = len(str(abs(int(Decimal(text)))))
    return digits if digits <= _DIGITS else None


def _is_time(text: str) -> bool:
    try:
        dt.datetime.fromisoformat(text[:19])
    except ValueError:
        return False
    return True


def _wider(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Return the type of a column with values of two types; text if no other one represents both."""
    integers = {pa.int32(): 10, pa.int64(): 20}
    kinds = {one, other}
    if kinds <= set(integers):
        return pa.int64()
    if kinds == {pa.int32(), pa.float64()}:
        return pa.float64()
    if kinds == {pa.date32(), _MOMENT}:
        return _MOMENT
    digits = [integers.get(kind) or (kind.precision if pa.types.is_decimal(kind) else None) for kind in kinds]
    if all(number is not None for number in digits):
        return pa.decimal128(max(number or 0 for number in digits), 0)
    return pa.string()


def _value(text: str, column: pa.DataType, zone: str, name: str) -> Any:
    try:
        if pa.types.is_timestamp(column) and column.tz is not None:
            return _in_zone(text, column, zone)
        if pa.types.is_integer(column):
            return pa.scalar(str(int(text))).cast(column).as_py()
        if pa.types.is_decimal(column):
            return pa.scalar(Decimal(text), column).as_py()
        if pa.types.is_floating(column) and (real := _REAL.fullmatch(text)):
            return float(real[1])
        return pa.scalar(text).cast(column).as_py()
    except (pa.ArrowException, ValueError, ArithmeticError) as error:
        raise spec_errors.InvalidInputError(
            f"partitions: {name}={text}: the value doesn't fit {column}: {error}"
        ) from error


def _in_zone(text: str, column: pa.DataType, zone: str) -> Any:
    local = pa.scalar(text).cast(pa.timestamp("us")).as_py()
    moment = local.replace(tzinfo=_zone(zone)).astimezone(dt.UTC)
    return pa.scalar(moment, column).as_py()


def _zone(name: str) -> dt.tzinfo:
    if match := _OFFSET.fullmatch(name):
        sign = -1 if match[1] == "-" else 1
        return dt.timezone(sign * dt.timedelta(hours=int(match[2]), minutes=int(match[3] or 0)))
    return ZoneInfo(name)
