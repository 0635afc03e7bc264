"""Python values as literals of a condition."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal


def literal(value: str | float | Decimal | bytes | dt.date) -> str:
    """Return a value as it is written in a condition: ``f"customer = {literal(name)}"``.

    Args:
        value: text, a number, a boolean, bytes, a date or a time.

    Raises:
        TypeError: it is something else; None is tested with ``IS NULL``.
    """
    if isinstance(value, bool | int | float | Decimal):
        return _number(value)
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, dt.date):
        kind = "TIMESTAMP" if isinstance(value, dt.datetime) else "DATE"
        return f"{kind} '{value.isoformat()}'"
    if not isinstance(value, str):
        raise TypeError(
            "literal: expected text, a number, a boolean, bytes, a date or a time, got "
            + ("None; a condition tests for it with IS NULL" if value is None else type(value).__name__)
        )
    return "'" + value.replace("'", "''") + "'"


def _number(value: float | Decimal) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    if not math.isfinite(value):  # conditions compare numbers with NaN and infinity as text
        return f"'{value}'"
    if isinstance(value, Decimal):
        return format(value, "f")
    return repr(int(value) if isinstance(value, int) else float(value))
