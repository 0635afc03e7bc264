"""The types of columns: which values they have, and how literals become such values."""

from __future__ import annotations

import datetime as dt
import math
import re
import zoneinfo
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from airflow_provider_lancens.conditions.tree import Compare, Node, Operand, Unless, Value

if TYPE_CHECKING:
    import pyarrow as pa

INTEGER, DECIMAL, FLOAT, TEXT, BYTES = "integer", "decimal", "float", "text", "bytes"
BOOLEAN, DATE, TIME, TIMESTAMP, ZONED = "boolean", "date", "time", "timestamp", "timestamp with a zone"
UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_DAY = re.compile(r"(\d{4})-(\d{2})-(\d{2})")
_CLOCK = re.compile(r"(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?")
_ZONE = re.compile(r"Z|([+-])(\d{2}):?(\d{2})?")
_TIMESTAMP = re.compile(rf"({_DAY.pattern})(?:[T ]({_CLOCK.pattern}))? ?({_ZONE.pattern})?")
_FLOATS = {"nan": math.nan, "infinity": math.inf, "inf": math.inf, "-infinity": -math.inf, "-inf": -math.inf}
_MOST_DIGITS = 400
_EPOCH = dt.date(1970, 1, 1)


class CannotCompareError(ValueError):
    """A literal that has no place among the values of a type."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal as it is written."""

    kind: str
    """``number``, ``text``, ``date``, ``timestamp``, ``boolean`` or ``bytes``."""
    value: Decimal | str | bytes | bool
    shown: str


def kind_of(arrow: pa.DataType | None) -> str | None:  # noqa: C901 one line a kind
    """Return the kind of a type's values; None if they can't be compared."""
    from pyarrow import types

    if arrow is None:
        return None
    if types.is_dictionary(arrow):
        return kind_of(arrow.value_type) if is_text(arrow.value_type) else None
    if types.is_boolean(arrow):
        return BOOLEAN
    if types.is_integer(arrow):
        return INTEGER
    if types.is_decimal(arrow):
        return DECIMAL
    if types.is_floating(arrow):
        return FLOAT
    if is_text(arrow):
        return TEXT
    if types.is_binary(arrow) or types.is_large_binary(arrow) or types.is_fixed_size_binary(arrow):
        return BYTES
    if types.is_date(arrow):
        return DATE
    if types.is_time(arrow):
        return TIME
    if types.is_timestamp(arrow):
        return TIMESTAMP if arrow.tz is None else ZONED
    return None


def is_text(arrow: pa.DataType) -> bool:
    """Return whether values of a type are text."""
    from pyarrow import types

    return bool(types.is_string(arrow) or types.is_large_string(arrow) or types.is_string_view(arrow))


def compared(sign: str, left: Operand, literal: Literal) -> Node:
    """Compare a column with a literal, which takes the column's type.

    A number that the type can't hold is compared exactly all the same: ``n > 1.5`` is ``n > 1`` for integers,
    and ``n < 1e30`` is true. Only numbers beside floating-point columns are rounded, to their precision.

    Raises:
        CannotCompareError: it can't be compared with the column.
    """
    kind = kind_of(left.type)
    if kind == FLOAT:
        return _float(sign, left, literal)
    if kind in (INTEGER, DECIMAL, DATE, TIME, TIMESTAMP, ZONED):
        exact, lowest, highest = _units(kind, left.type, literal)
        return _on_grid(sign, left, exact, (lowest, highest))
    value = _plain(kind, literal, sign)
    if sign in ("=", "!=") and isinstance(value, bytes) and not _fits(value, left.type):
        return Unless(left, sign == "!=")
    return Compare(sign, left, value)


def _fits(value: bytes, arrow: pa.DataType) -> bool:
    from pyarrow import types

    return not types.is_fixed_size_binary(arrow) or len(value) == arrow.byte_width


def _plain(kind: str | None, literal: Literal, sign: str) -> Value:
    expected = {TEXT: "text", BYTES: "bytes", BOOLEAN: "boolean"}.get(kind or "")
    if expected is None:
        raise CannotCompareError("only IS NULL and IS NOT NULL")
    if literal.kind != expected or isinstance(literal.value, Decimal):
        forms = {
            "text": "text in single quotes",
            "bytes": "bytes such as X'00FF'",
            "boolean": "TRUE or FALSE",
        }
        raise CannotCompareError(forms[expected])
    if kind == BOOLEAN and sign not in ("=", "!="):
        raise CannotCompareError("= or != with TRUE or FALSE")
    return literal.value


def _on_grid(sign: str, left: Operand, exact: Fraction, limits: tuple[int, int]) -> Node:
    """Compare with a value that the type doesn't have, by the values that it has."""
    whole = math.floor(exact)
    if not limits[0] <= whole <= limits[1]:
        below = whole < limits[0]
        return Unless(left, {"=": False, "!=": True}.get(sign, (sign in (">", ">=")) is below))
    if whole == exact:
        return Compare(sign, left, whole)
    if sign in ("=", "!="):
        return Unless(left, sign == "!=")
    return Compare("<=" if sign in ("<", "<=") else ">", left, whole)


def _float(sign: str, left: Operand, literal: Literal) -> Node:
    value = _as_float(literal, left.type)
    if math.isnan(value) and sign in (">", "<="):
        return Unless(left, sign == "<=")  # nothing is greater than NaN
    if math.isinf(value) and literal.kind == "number":  # a finite literal beyond the type's range
        if sign in ("=", "!="):
            return Unless(left, sign == "!=")
        upwards = {"<": "<", "<=": "<", ">": ">=", ">=": ">="}
        downwards = {"<": "<=", "<=": "<=", ">": ">", ">=": ">"}
        sign = (upwards if value > 0 else downwards)[sign]
    return Compare(sign, left, value)


def _as_float(literal: Literal, arrow: pa.DataType) -> float:
    import numpy as np

    if isinstance(literal.value, str) and literal.value.lower() in _FLOATS:
        return _FLOATS[literal.value.lower()]
    if literal.kind != "number":
        raise CannotCompareError("a number, or 'NaN', 'Infinity' or '-Infinity'")
    with np.errstate(over="ignore"):
        rounded = arrow.to_pandas_dtype()(float(str(literal.value)))
    return float(rounded) + 0.0  # adding 0.0 removes the sign of a zero


def _units(kind: str | None, arrow: pa.DataType, literal: Literal) -> tuple[Fraction, int, int]:
    """Return a literal as a number of the type's units, and the lowest and highest number that it holds."""
    from pyarrow import types

    if kind in (INTEGER, DECIMAL):
        if not isinstance(literal.value, Decimal):
            raise CannotCompareError("a number without quotes")
        if kind == DECIMAL:
            highest = 10**arrow.precision - 1
            return _fraction(literal.value) * Fraction(10) ** arrow.scale, -highest, highest
        bits = arrow.bit_width
        unsigned = types.is_unsigned_integer(arrow)
        limits = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        return _fraction(literal.value), *limits
    limits = (-(2**63), 2**63 - 1)
    if not isinstance(literal.value, str):
        raise CannotCompareError(_FORMS[kind or ""])
    if kind == DATE:
        days = Fraction((_day(literal) - _EPOCH).days)
        return (days, -(2**31), 2**31 - 1) if types.is_date32(arrow) else (days * 86_400_000, *limits)
    if kind == TIME:
        return Fraction(_clock(literal), UNITS["ns"]) * UNITS[arrow.unit], 0, 86_400 * UNITS[arrow.unit] - 1
    return Fraction(_instant(literal, arrow.tz), UNITS["ns"]) * UNITS[arrow.unit], *limits


_FORMS = {
    DATE: "a date such as '2026-11-01'",
    TIME: "a time such as '12:30:00'",
    TIMESTAMP: "a time without an offset such as '2026-11-01 12:30:00'",
    ZONED: "a time such as '2026-11-01 12:30:00Z' or '2026-11-01'",
}


def _fraction(number: Decimal) -> Fraction:
    if number and abs(number.adjusted()) > _MOST_DIGITS:  # beyond the range of all types, or too close to 0
        beyond = _MOST_DIGITS if number.adjusted() > 0 else -_MOST_DIGITS
        number = Decimal(1 if number > 0 else -1).scaleb(beyond)
    return Fraction(number)


def _day(literal: Literal) -> dt.date:
    match = _DAY.fullmatch(str(literal.value))
    if literal.kind == "timestamp" or match is None:
        raise CannotCompareError(_FORMS[DATE])
    return _calendar(match[0])


def _calendar(text: str) -> dt.date:
    try:
        return dt.date.fromisoformat(text)
    except ValueError as error:
        raise CannotCompareError(f"a day of the calendar: {error}") from error


def _clock(literal: Literal) -> int:
    match = _CLOCK.fullmatch(str(literal.value))
    if literal.kind != "text" or match is None:
        raise CannotCompareError(_FORMS[TIME])
    return _nanoseconds(match[0])


def _nanoseconds(clock: str) -> int:
    match = _CLOCK.fullmatch(clock)
    hours, minutes, seconds, fraction = match.groups(default="0") if match else ("0",) * 4
    if int(hours) > 23 or int(minutes) > 59 or int(seconds) > 59:
        raise CannotCompareError("a time from 00:00:00 to 23:59:59.999999999")
    whole = int(hours) * 3600 + int(minutes) * 60 + int(seconds)
    return whole * UNITS["ns"] + int(fraction.ljust(9, "0"))


def _instant(literal: Literal, zone: str | None) -> int:
    """Return the nanoseconds since 1970: of the instant, or, without zone, of the clock and the calendar."""
    match = _TIMESTAMP.fullmatch(str(literal.value))
    if match is None or (literal.kind == "date" and match[5]):
        raise CannotCompareError(_FORMS[TIMESTAMP if zone is None else ZONED])
    day, clock, offset = _calendar(match[1]), match[5], match[10]
    local = (day - _EPOCH).days * 86_400 * UNITS["ns"] + (_nanoseconds(clock) if clock else 0)
    if zone is None:
        if offset:
            raise CannotCompareError(f"{_FORMS[TIMESTAMP]}, since the column has no zone")
        return local
    seconds = _offset(offset) if offset else _offset_in(zone, day, local // UNITS["ns"] % 86_400)
    return local - seconds * UNITS["ns"]


def _offset(text: str) -> int:
    match = _ZONE.fullmatch(text)
    if match is None or match[1] is None:
        return 0
    hours, minutes = int(match[2]), int(match[3] or 0)
    if hours > 18 or minutes > 59:
        raise CannotCompareError("an offset from -18:00 to +18:00")
    return (hours * 3600 + minutes * 60) * (-1 if match[1] == "-" else 1)


def _offset_in(zone: str, day: dt.date, second: int) -> int:
    """Return the offset of a zone at a local time, if there is exactly one."""
    if _ZONE.fullmatch(zone):
        return _offset(zone)
    try:
        known = zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise CannotCompareError(f"a time with an offset, since the zone {zone} isn't known here") from None
    local = dt.datetime.combine(day, dt.time(second // 3600, second // 60 % 60, second % 60))
    offsets = [local.replace(tzinfo=known, fold=fold).utcoffset() for fold in (0, 1)]
    if offsets[0] != offsets[1] or offsets[0] is None:
        raise CannotCompareError(f"a time with an offset, since {zone} has this one twice or not at all")
    return round(offsets[0].total_seconds())
