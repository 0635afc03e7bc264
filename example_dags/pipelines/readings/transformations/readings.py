"""Readings that arrive as files of JSON lines: each is added to one of two Lance tables, once."""

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

COLUMNS = "station string, time timestamp, celsius double, _corrupt_record string"
VALID = "_corrupt_record IS NULL AND station IS NOT NULL AND time IS NOT NULL AND celsius BETWEEN -90 AND 60"

spark = SparkSession.active()


@dp.temporary_view
def arrived() -> DataFrame:
    """Return the readings in files that a flow has not read yet."""
    lines = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 100)
    rows = lines.json(os.environ["READINGS_FOLDER"])
    return rows.selectExpr("*", f"coalesce({VALID}, false) AS is_valid")


dp.create_sink("lance_readings", "lake", {"table": "stations$readings"})
dp.create_sink("lance_refused", "lake", {"table": "stations$refused"})


@dp.append_flow(target="lance_readings")
def valid_readings() -> DataFrame:
    """Return the plausible readings."""
    return spark.readStream.table("arrived").where("is_valid").select("station", "time", "celsius")


@dp.append_flow(target="lance_refused")
def refused_readings() -> DataFrame:
    """Return the implausible readings, for review."""
    rows = spark.readStream.table("arrived").where("NOT is_valid")
    return rows.select("station", "time", "celsius", "_corrupt_record")
