"""The interval at which a table is expected to get new data, from its property."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta

from airflow_provider_lancens import spec_errors

EXPECTED_UPDATE = "lancens.expected_update_interval"
"""The property, with a duration in ISO 8601 or a number of seconds."""
_DURATION = re.compile(
    r"P(?=.)(?:(?P<weeks>\d+)W)?(?:(?P<days>\d+)D)?"
    r"(?:T(?=.)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+)S)?)?"
)
_LONGEST = 100
_UNITS = (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1))


def parse_interval(text: str, name: str = EXPECTED_UPDATE) -> timedelta:
    """Return a duration.

    Args:
        text: such as ``PT6H``, ``P1D`` or ``21600``. Months and years have no fixed length.
        name: what it is the value of, for the message.

    Raises:
        InvalidInputError: (13) it is something else, or zero.
    """
    given = text.strip()
    found = _DURATION.fullmatch(given.upper()) if len(given) <= _LONGEST else None
    try:
        if found is not None:
            interval = timedelta(**{unit: int(count) for unit, count in found.groupdict("0").items()})
        else:
            interval = timedelta(seconds=int(given) if given.isascii() and given.isdecimal() else 0)
    except OverflowError:
        interval = timedelta()
    if interval <= timedelta():
        raise spec_errors.InvalidInputError(
            f"{name}: expected a duration such as PT6H, P1D or a number of seconds, got {text[:_LONGEST]!r}"
        )
    return interval


def check_expected_update(properties: Mapping[str, str]) -> None:
    """Check the property of a table that is declared or registered.

    Raises:
        InvalidInputError: (13) it is no duration.
    """
    if (text := properties.get(EXPECTED_UPDATE)) is not None:
        parse_interval(text, f"property {EXPECTED_UPDATE!r}")


def interval_text(interval: timedelta) -> str:
    """Return a duration in its two largest units, such as ``6 hours 10 minutes``."""
    seconds, parts = int(interval.total_seconds()), []
    for unit, length in _UNITS:
        count, seconds = divmod(seconds, length)
        if count:
            parts.append(f"{count} {unit}{'' if count == 1 else 's'}")
        elif parts:
            break  # units below a zero are left out
    return " ".join(parts[:2]) or "less than a second"
