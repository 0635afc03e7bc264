"""Sources of each table: plain functions of a Spark session, independent of Airflow and Lance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nycflights.months import month_number

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WEATHER_COLUMNS = ("temp", "wind_speed", "visib", "precip")


def landed_file(spark: SparkSession, file: str) -> DataFrame:
    """Read the rows of a landed file."""
    return spark.read.parquet(file)


def delays_of_month(
    spark: SparkSession,  # noqa: ARG001  (every source is given the session)
    flights: DataFrame,
    weather: DataFrame,
    month: str,
) -> DataFrame:
    """Return the departure delays by hour and airport, with the weather of that hour.

    A canceled flight has no delay: it counts in `flights` and `cancelled`, not in the delays. Hours without
    weather are kept, with nulls.
    """
    from pyspark.sql import functions as sql

    in_month = sql.col("month") == month_number(month)
    hours = (
        flights.where(in_month)
        .groupBy("origin", "time_hour", "month")
        .agg(
            sql.count("*").alias("flights"),
            sql.count_if(sql.col("dep_delay").isNull()).alias("cancelled"),
            sql.avg("dep_delay").alias("mean_dep_delay"),
            sql.max("dep_delay").alias("max_dep_delay"),
        )
    )
    conditions = weather.where(in_month).select("origin", "time_hour", *WEATHER_COLUMNS)
    return hours.join(conditions, on=["origin", "time_hour"], how="left")
