"""Numbers in logs: small ones aren't shown as zero, and a rate only where it says something."""

import pytest

from airflow_provider_lancens.formatting import format_count, format_rate, format_size


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1_000, "1.0 kB"),
        (999_949, "999.9 kB"),
        (999_950, "1.0 MB"),
        (6_412_345_678, "6,412.3 MB"),
    ],
)
def test_a_size_is_shown_in_the_unit_that_it_needs(count: int, shown: str) -> None:
    assert format_size(count) == shown


def test_one_thing_is_singular() -> None:
    assert [format_count(count, "file") for count in (0, 1, 2_000)] == ["0 files", "1 file", "2,000 files"]


def test_a_rate_of_less_than_a_row_a_second_or_over_less_than_a_second_is_left_out() -> None:
    assert format_rate(1_000_000, 2.0) == " (500,000 rows/s)"
    assert format_rate(1, 30.0) == format_rate(0, 30.0) == format_rate(100, 0.01) == ""
