"""JSON records beside a table's data: any client may have written them, and a power failure emptied them."""

from __future__ import annotations

import json
from typing import Any

UNREADABLE = (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError)
"""Exceptions of reading a record that isn't as this package writes it."""


def record_fields(content: bytes | str | None) -> dict[str, Any]:
    """Return the fields of a record; none if it isn't a readable JSON object."""
    try:
        fields = json.loads(content or b"{}")
    except (RecursionError, ValueError):
        return {}
    return fields if isinstance(fields, dict) else {}


def whole_number(value: object) -> int | None:
    """Return a number of a record or of a property; None if it isn't one from 0 to 2^64."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= 20:
        value = int(value)
    return value if type(value) is int and 0 <= value <= 2**64 else None
