"""Durations as a property of a table has them."""

from datetime import timedelta

import pytest
from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.namespace.table_properties import new_table_parameters
from airflow_provider_lancens.namespace.update_interval import EXPECTED_UPDATE, interval_text, parse_interval


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("PT6H", 6),
        ("pt90m", 1.5),
        ("P1D", 24),
        (" P1DT12H ", 36),
        ("P2W", 336),
        ("21600", 6),
        ("PT1H30M", 1.5),
    ],
)
def test_a_duration_is_iso_8601_or_seconds(text: str, hours: float) -> None:
    assert parse_interval(text) == timedelta(hours=hours)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "P",
        "PT",
        "P1M",
        "P1Y",
        "P1DT",
        "6h",
        "6 hours",
        "0",
        "PT0S",
        "-3600",
        "1.5",
        "PT1.5H",
        "²",
        "9" * 99,
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="max_age: expected a duration such as PT6H, P1D or a number"):
        parse_interval(text, "max_age")


def test_a_table_is_not_declared_with_an_invalid_one() -> None:
    with pytest.raises(InvalidInputError, match=r"property .lancens.expected_update_interval.: expected"):
        new_table_parameters({EXPECTED_UPDATE: "daily"})
    assert new_table_parameters({EXPECTED_UPDATE: "P1D"})[EXPECTED_UPDATE] == "P1D"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "less than a second"),
        (1, "1 second"),
        (3600, "1 hour"),
        (22230, "6 hours 10 minutes"),
        (3605, "1 hour"),
        (90061, "1 day 1 hour"),
        (172800, "2 days"),
    ],
)
def test_a_duration_is_printed_in_its_two_largest_units(seconds: float, text: str) -> None:
    assert interval_text(timedelta(seconds=seconds)) == text
