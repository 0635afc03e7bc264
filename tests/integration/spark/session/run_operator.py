"""Runs each operator twice, on the Spark of a connection; started by `test_spark_connect.py`.

In a separate process, which can have only one Spark session.
"""

import json
import sys
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from airflow_provider_lancens.operators.ingest import LanceAppendOperator
from airflow_provider_lancens.operators.maintenance import (
    LanceCompactTableOperator,
    LanceCreateIndexOperator,
)
from airflow_provider_lancens.spark import FileSource, Table
from tests.integration.spark.run_twice import run_twice


def cheap(spark: SparkSession, orders: Table) -> DataFrame:
    return orders.read().where("price < 3")


def ingest_files(files: dict[str, Any], **arguments: Any) -> LanceAppendOperator:
    return LanceAppendOperator(source=FileSource(**files), **arguments)


OPERATORS: dict[str, Any] = {
    "ingest": partial(LanceAppendOperator, source=cheap),
    "ingest_files": ingest_files,
    "compact": LanceCompactTableOperator,
    "index": LanceCreateIndexOperator,
}


def main() -> None:
    for task, arguments in json.loads(sys.argv[1]):
        run_twice(OPERATORS[task](task_id=task, lance_conn_id="lake", **arguments))


if __name__ == "__main__":
    main()
