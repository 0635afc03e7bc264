"""One task by its operator, twice, somewhere in the world of Spark; run by `test_places.py`.

In a process of its own: a process has one Spark.
"""

import json
import sys
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from airflow_provider_lancens.operators.spark_ingest import LanceSparkIngestOperator
from airflow_provider_lancens.operators.spark_maintenance import (
    LanceCompactTableOperator,
    LanceCreateIndexOperator,
)
from airflow_provider_lancens.spark import FileSource
from tests.integration.spark.places.twice import run_twice


def cheap(spark: SparkSession, orders: DataFrame) -> DataFrame:
    return orders.where("price < 3")


def ingest_files(files: dict[str, Any], **arguments: Any) -> LanceSparkIngestOperator:
    return LanceSparkIngestOperator(source=FileSource(**files), **arguments)


OPERATORS: dict[str, Any] = {
    "ingest": partial(LanceSparkIngestOperator, source=cheap),
    "ingest_files": ingest_files,
    "compact": LanceCompactTableOperator,
    "index": LanceCreateIndexOperator,
}


def main() -> None:
    run_twice(OPERATORS[sys.argv[1]](task_id="ingest", lance_conn_id="lake", **json.loads(sys.argv[2])))


if __name__ == "__main__":
    main()
