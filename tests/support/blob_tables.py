"""Tables of large values."""

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from airflow_provider_lancens.spark import TableLayout

BLOBS = TableLayout(blob_columns=["video"])


REFERENCES = "id long, video struct<uri: string, position: long, size: long>"


Read = Callable[..., dict[int, Any]]


def clips(spark: SparkSession, *rows: tuple[int, Any]) -> DataFrame:
    kind = "binary" if any(isinstance(value, bytes | bytearray) for _, value in rows) else "string"
    return spark.createDataFrame(list(rows), f"id long, video {kind}")
