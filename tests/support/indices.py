"""Indices of a table that is given by its namespace and its identifier."""

from collections.abc import Mapping
from typing import Any

from airflow_provider_lancens.spark import IndexResult
from airflow_provider_lancens.spark.maintenance import IndexSpec, index


def build_index(
    spark: Any,
    namespace: Any,
    table: Any,
    column: str,
    index_type: str,
    *,
    name: str | None = None,
    options: Mapping[str, Any] | None = None,
    **how: Any,
) -> IndexResult:
    """Build an index, as `Table.create_index` does."""
    spec = IndexSpec(column, index_type, name or "", options or {})
    return index.build_index(spark, namespace, table, spec, **how)
