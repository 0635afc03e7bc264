"""The daemon that forks the Python workers of the tests' Spark sessions, with what each of them imports.

Workers of tests often end: with a task that fails on purpose, or because they were idle for a minute. Lance
itself isn't imported here, since it doesn't support forks.
"""

import pandas  # noqa: F401
import pyarrow.compute
import pyarrow.dataset
import pyarrow.parquet  # noqa: F401
from pyspark.daemon import manager

import airflow_provider_lancens.spark.write.write_task  # noqa: F401

if __name__ == "__main__":
    manager()
