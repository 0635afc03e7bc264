"""Formats counts, sizes, rates and long lists for messages, logs and results."""

from __future__ import annotations

from collections.abc import Iterable

_LEAST_SECONDS = 1.0
"""A rate over a shorter time says nothing."""


def counted(count: int, noun: str) -> str:
    """Return a number of things: ``1 file``, ``2,000 files``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def size_of(count: int) -> str:
    """Return a number of bytes in bytes, kB or MB, so that a small one isn't shown as 0.0."""
    if count < 1000:
        return counted(count, "byte")
    if count < 999_950:
        return f"{count / 1e3:,.1f} kB"
    return f"{count / 1e6:,.1f} MB"


def rate_of(rows: int, seconds: float) -> str:
    """Return the rows per second in parentheses, after a space; empty if they say nothing."""
    rate = rows / max(seconds, 0.001)
    return f" ({rate:,.0f} rows/s)" if seconds >= _LEAST_SECONDS and rate >= 1 else ""


def example_of(names: Iterable[str]) -> str:
    """Return the first of some names, sorted, and the number of others: ``a and 2 more``."""
    first, *others = sorted(names)
    return f"{first} and {len(others)} more" if others else first
