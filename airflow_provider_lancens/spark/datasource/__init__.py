"""A PySpark data source over Lance tables: ``format("lancens")`` for `df.write` and `spark.read`.

It does what `write_table` and `read_table` do, in the words of PySpark's Python Data Source API. Spark
runs its parts in processes of their own: the plan, the executors' work and the commit.
"""

from __future__ import annotations

import pyspark

LOWEST = (4, 1)
"""The first PySpark whose Python data sources take and give Arrow, and filters."""


def check_pyspark(version: str) -> None:
    """Return where this PySpark can run the data source.

    Raises:
        ImportError: it is too old; the message says what to use on it.
    """
    if tuple(int(part) for part in version.split(".")[:2]) < LOWEST:
        raise ImportError(
            f"pyspark {version}: the data source 'lancens' needs {'.'.join(map(str, LOWEST))} or newer; "
            "write_table and read_table of airflow_provider_lancens.spark do the same on this one"
        )


check_pyspark(pyspark.__version__)

from airflow_provider_lancens.spark.datasource.source import (  # noqa: E402 too old a PySpark has no such API
    LanceDataSource,
    lance_data_source,
)

__all__ = ["LanceDataSource", "lance_data_source"]
