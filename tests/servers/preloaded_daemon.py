"""The daemon that forks the Python workers of the tests' Spark sessions, with what each of them imports.

Workers of tests often end: with a task that fails on purpose, or because they were idle for a minute. Lance
itself isn't imported here, since it doesn't support forks.
"""
# ruff: noqa: E402 what is imported depends on the path

import gc
import sys

# Spark prepends ZIP files with PySpark, and a JAR file: each process would compile what it imports from them,
# and each task would read their directories again. The driver's own PySpark has its bytecode beside it.
for archive in [path for path in sys.path if path.endswith((".zip", ".jar"))]:
    sys.path.remove(archive)
    sys.path_importer_cache.pop(archive, None)

import pandas  # noqa: F401
import pyarrow.compute
import pyarrow.dataset
import pyarrow.parquet  # noqa: F401
from pyspark.daemon import manager

import airflow_provider_lancens.spark.write.write_task  # noqa: F401

if __name__ == "__main__":
    gc.freeze()  # a worker collects garbage after each task, which takes 50 ms with all these modules
    manager()
