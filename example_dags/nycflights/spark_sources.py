"""Sources of each table: functions of a Spark session and of the tables that they read, without Airflow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nycflights.months import month_number

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from airflow_provider_lancens.spark import Table

WEATHER_COLUMNS = ("temp", "wind_speed", "visib", "precip")


def landed_file(spark: SparkSession, file: str) -> DataFrame:
    """Read the rows of a landed file."""
    return spark.read.parquet(file)


def delays_of_month(
    spark: SparkSession,  # noqa: ARG001  (every source is given the session)
    flights: Table,
    weather: Table,
    month: str,
) -> DataFrame:
    """Return the departure delays by hour and airport, with the weather of that hour.

    A canceled flight has no delay: it counts in `flights` and `cancelled`, not in the delays. Hours without
    weather are kept, with nulls.
    """
    from pyspark.sql import functions as sql

    in_month = f"month = {month_number(month)}"
    hours = (
        flights.read(filter=in_month)
        .groupBy("origin", "time_hour", "month")
        .agg(
            sql.count("*").alias("flights"),
            sql.count_if(sql.col("dep_delay").isNull()).alias("cancelled"),
            sql.avg("dep_delay").alias("mean_dep_delay"),
            sql.max("dep_delay").alias("max_dep_delay"),
        )
    )
    conditions = weather.read(columns=["origin", "time_hour", *WEATHER_COLUMNS], filter=in_month)
    return hours.join(conditions, on=["origin", "time_hour"], how="left")
