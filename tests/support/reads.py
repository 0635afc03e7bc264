"""Reads of a table that is given by its namespace and its identifier."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.spark.changes import read_changes as changes
from airflow_provider_lancens.spark.read import read_opened
from airflow_provider_lancens.spark.table.opened_version import open_version
from airflow_provider_lancens.spark.table.resolved_table import resolved_table
from airflow_provider_lancens.spark.table.version_lookup import WantedVersion

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def read_table(
    spark: Any,
    namespace: Any,
    table: Any,
    *,
    version: Any = None,
    columns: Sequence[str] | None = None,
    filter: str | None = None,  # noqa: A002 what `Table.read` calls it
    blobs: Mapping[str, Any] | None = None,
) -> "DataFrame":
    """Return a table at a version, by default the newest one, as `Table.read` does."""
    with resolved_table(namespace, table) as target:
        dataset = open_version(target, WantedVersion.of(version).find(target))
        return read_opened(spark, target, dataset, columns, filter, blobs)


def read_changes(spark: Any, namespace: Any, table: Any, **range_and_options: Any) -> "DataFrame":
    """Return the changes of a table, as `Changes.read` does."""
    with resolved_table(namespace, table) as target:
        return changes.read_changes(spark, target, **range_and_options)
