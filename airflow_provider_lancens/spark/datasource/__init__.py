"""A PySpark data source over Lance tables: ``format("lancens")`` for `df.write` and `spark.read`.

It reads and writes tables, through PySpark's Python Data Source API. Spark runs the plan,
the executors' tasks and the commit in separate processes.
"""

from __future__ import annotations

import pyspark

LOWEST = (4, 1)
"""The first PySpark version whose Python data sources support Arrow and filters."""


def check_pyspark(version: str) -> None:
    """Check that this PySpark can run the data source.

    Raises:
        ImportError: it is too old; the message says what to use on it.
    """
    if tuple(int(part) for part in version.split(".")[:2]) < LOWEST:
        raise ImportError(
            f"pyspark {version}: the data source 'lancens' requires PySpark "
            f"{'.'.join(map(str, LOWEST))} or newer; use the methods of a "
            "Table instead: connect(...).table(...)"
        )


check_pyspark(pyspark.__version__)

from airflow_provider_lancens.spark.datasource.data_source import (  # noqa: E402 too old a PySpark has no such API
    LanceDataSource,
    lance_data_source,
)

__all__ = ["LanceDataSource", "lance_data_source"]
