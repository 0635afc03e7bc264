"""What Spark makes for each table: plain functions of a session, which know nothing of Airflow or Lance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nycflights.months import month_number

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WEATHER_COLUMNS = ("temp", "wind_speed", "visib", "precip")


def landed_file(spark: SparkSession, file: str) -> DataFrame:
    """The rows of a landed file."""
    return spark.read.parquet(file)


def delays_of_month(
    spark: SparkSession,  # noqa: ARG001  (every source is given the session)
    flights: DataFrame,
    weather: DataFrame,
    month: str,
) -> DataFrame:
    """How late flights left in each hour from each airport, beside the weather of that hour.

    A canceled flight has no delay: it counts in `flights` and `cancelled`, not in the delays. Some hours
    have no weather: they stay, with nulls.
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
