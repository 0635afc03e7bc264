"""Apache Airflow provider for Lance tables registered in Hive Metastore and AWS Glue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_lancens._exports import lazy_exports

if TYPE_CHECKING:
    from airflow_provider_lancens.conditions.quoting import literal
    from airflow_provider_lancens.spark.lance_catalog import LanceCatalog, connect
    from airflow_provider_lancens.spark.lance_table import Table
    from airflow_provider_lancens.spark.options import WriteIdentity

__version__ = "0.1.0"

__all__ = ["LanceCatalog", "Table", "WriteIdentity", "connect", "literal"]

__getattr__ = lazy_exports(
    __name__,
    {
        "LanceCatalog": "spark.lance_catalog",
        "Table": "spark.lance_table",
        "WriteIdentity": "spark.options",
        "connect": "spark.lance_catalog",
        "literal": "conditions.quoting",
    },
)
