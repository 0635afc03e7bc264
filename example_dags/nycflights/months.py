"""Which month of 2013 a run is about."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

import pendulum

YEAR = 2013
TIMEZONE = "America/New_York"
MONTHS = tuple(f"{YEAR}-{number:02d}" for number in range(1, 13))


def month_at(moment: datetime | None) -> str | None:
    """The month that holds this moment in New York, None where it isn't one of 2013."""
    if moment is None:
        return None
    month = pendulum.instance(moment).in_timezone(TIMEZONE).format("YYYY-MM")
    return month if month in MONTHS else None


def beginning_of(month: str) -> pendulum.DateTime:
    """The month's first instant in New York."""
    return pendulum.datetime(YEAR, month_number(month), 1, tz=TIMEZONE)


def first_missing(held: Collection[str]) -> str | None:
    """The first month that isn't held yet, None where the year is complete."""
    return next((month for month in MONTHS if month not in held), None)


def month_number(month: str) -> int:
    """`2013-07` is 7.

    Raises:
        ValueError: it isn't a month of 2013.
    """
    if month not in MONTHS:
        raise ValueError(f"month: expected one of {MONTHS[0]} to {MONTHS[-1]}, got {month!r}")
    return MONTHS.index(month) + 1
