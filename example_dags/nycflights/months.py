"""The months of 2013."""

from __future__ import annotations

from collections.abc import Collection

YEAR = 2013
TIMEZONE = "America/New_York"
MONTHS = tuple(f"{YEAR}-{number:02d}" for number in range(1, 13))


def first_missing(held: Collection[str]) -> str | None:
    """Return the first month that is missing, or None if the year is complete."""
    return next((month for month in MONTHS if month not in held), None)


def month_number(month: str) -> int:
    """Return the number of a month: 7 for `2013-07`.

    Raises:
        ValueError: it isn't a month of 2013.
    """
    if month not in MONTHS:
        raise ValueError(f"month: expected one of {MONTHS[0]} to {MONTHS[-1]}, got {month!r}")
    return MONTHS.index(month) + 1
