"""Formats counts, sizes, rates and long lists for messages, logs and results."""

from __future__ import annotations

from collections.abc import Iterable

_LEAST_SECONDS = 1.0
"""The shortest time over which a rate is shown."""


def format_count(count: int, noun: str) -> str:
    """Return a count with its noun: ``1 file``, ``2,000 files``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def format_size(count: int) -> str:
    """Return a number of bytes with its unit, bytes, kB or MB: ``1.3 kB``."""
    if count < 1000:
        return format_count(count, "byte")
    if count < 999_950:
        return f"{count / 1e3:,.1f} kB"
    return f"{count / 1e6:,.1f} MB"


def format_rate(rows: int, seconds: float) -> str:
    """Return the rows per second as a suffix, `` (1,200 rows/s)``; empty if a rate means nothing."""
    rate = rows / max(seconds, 0.001)
    return f" ({rate:,.0f} rows/s)" if seconds >= _LEAST_SECONDS and rate >= 1 else ""


def format_examples(names: Iterable[str]) -> str:
    """Return the first name, in sorted order, and the number of the others: ``a and 2 more``."""
    first, *others = sorted(names)
    return f"{first} and {len(others)} more" if others else first
