"""The month that a run of `lance_flights` processes, and the runs that its schedule creates."""

import pendulum
import pytest
from flights import dag
from nycflights.months import MONTHS, beginning_of, first_missing, month_at, month_number

NEW_YORK = "America/New_York"


def test_catching_up_runs_each_month_of_the_year_once() -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    scheduled = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(dag))

    runs = scheduled.iter_dagrun_infos_between(pendulum.datetime(2000, 1, 1), pendulum.datetime(2030, 1, 1))

    assert [month_at(run.data_interval.start) for run in runs] == list(MONTHS)


def test_a_month_begins_and_ends_at_midnight_in_new_york() -> None:
    assert month_at(pendulum.datetime(2013, 2, 1, 4, 59, 59)) == "2013-01"
    assert month_at(pendulum.datetime(2013, 2, 1, 5)) == "2013-02"
    assert month_at(pendulum.datetime(2013, 7, 1, 4)) == "2013-07"


@pytest.mark.parametrize(
    "moment", [None, pendulum.datetime(2013, 1, 1, 4, 59), pendulum.datetime(2014, 1, 1, 5)], ids=str
)
def test_months_of_other_years_are_refused(moment: pendulum.DateTime | None) -> None:
    assert month_at(moment) is None


def test_every_month_is_found_by_its_start() -> None:
    assert [month_at(beginning_of(month)) for month in MONTHS] == list(MONTHS)


def test_the_first_missing_month_is_chosen_before_later_ones() -> None:
    assert first_missing([]) == "2013-01"
    assert first_missing(["2013-01", "2013-03"]) == "2013-02"
    assert first_missing(MONTHS) is None


def test_an_invalid_month_is_refused() -> None:
    with pytest.raises(ValueError, match="2013-01 to 2013-12, got '2014-01'"):
        month_number("2014-01")
