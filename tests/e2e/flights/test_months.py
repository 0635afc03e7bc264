"""The month that a run of `lance_flights` processes."""

import pytest
from nycflights.months import MONTHS, first_missing, month_number


def test_the_first_missing_month_is_chosen_before_later_ones() -> None:
    assert first_missing([]) == "2013-01"
    assert first_missing(["2013-01", "2013-03"]) == "2013-02"
    assert first_missing(MONTHS) is None


def test_an_invalid_month_is_refused() -> None:
    with pytest.raises(ValueError, match="2013-01 to 2013-12, got '2014-01'"):
        month_number("2014-01")
