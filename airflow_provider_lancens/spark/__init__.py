"""Write Spark DataFrames and files into Lance tables exactly once, and read them at a version.

No Airflow here. Executors import modules of this package, so nothing heavy loads until it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_lancens._exports import lazy_exports

if TYPE_CHECKING:
    from airflow_provider_lancens.spark.bookmarks import Bookmark, UnreadVersions
    from airflow_provider_lancens.spark.compute.column_task import ColumnFunctionError
    from airflow_provider_lancens.spark.datasource import LanceDataSource, lance_data_source
    from airflow_provider_lancens.spark.file_source import FileSource
    from airflow_provider_lancens.spark.lance_catalog import LanceCatalog, connect
    from airflow_provider_lancens.spark.lance_table import Changes, Table
    from airflow_provider_lancens.spark.options import TableLayout, WriteIdentity
    from airflow_provider_lancens.spark.release_sets import ReleaseSet
    from airflow_provider_lancens.spark.results import (
        CatalogResult,
        CheckResult,
        CompactionResult,
        ComputeResult,
        ExpireResult,
        FreshnessResult,
        IndexResult,
        MaintenanceResult,
        OrphansResult,
        ReleaseResult,
        RestoreResult,
        SchemaResult,
        StreamResult,
        WriteResult,
    )
    from airflow_provider_lancens.spark.streaming.foreach_batch import foreach_batch
    from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec
    from airflow_provider_lancens.spark.table_info import IndexInfo, TableStats, Tag, VersionInfo
    from airflow_provider_lancens.spark.write.files.file_plan import fingerprint_files

__all__ = [
    "Bookmark",
    "CatalogResult",
    "Changes",
    "CheckResult",
    "ColumnFunctionError",
    "CompactionResult",
    "ComputeResult",
    "ExpireResult",
    "FileSource",
    "FreshnessResult",
    "IndexInfo",
    "IndexResult",
    "LanceCatalog",
    "LanceDataSource",
    "MaintenanceResult",
    "NamespaceSpec",
    "OrphansResult",
    "ReleaseResult",
    "ReleaseSet",
    "RestoreResult",
    "SchemaResult",
    "StreamResult",
    "Table",
    "TableLayout",
    "TableStats",
    "Tag",
    "UnreadVersions",
    "VersionInfo",
    "WriteIdentity",
    "WriteResult",
    "connect",
    "fingerprint_files",
    "foreach_batch",
    "lance_data_source",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "Bookmark": "bookmarks",
        "UnreadVersions": "bookmarks",
        "WriteIdentity": "options",
        "VersionInfo": "table_info",
        "Tag": "table_info",
        "TableStats": "table_info",
        "IndexInfo": "table_info",
        "ReleaseSet": "release_sets",
        "connect": "lance_catalog",
        "LanceCatalog": "lance_catalog",
        "Table": "lance_table",
        "Changes": "lance_table",
        "ColumnFunctionError": "compute.column_task",
        "FileSource": "file_source",
        "LanceDataSource": "datasource",
        "NamespaceSpec": "table.resolved_table",
        "TableLayout": "options",
        "CatalogResult": "results",
        "CheckResult": "results",
        "FreshnessResult": "results",
        "CompactionResult": "results",
        "ComputeResult": "results",
        "ExpireResult": "results",
        "IndexResult": "results",
        "MaintenanceResult": "results",
        "OrphansResult": "results",
        "ReleaseResult": "results",
        "RestoreResult": "results",
        "SchemaResult": "results",
        "StreamResult": "results",
        "WriteResult": "results",
        "fingerprint_files": "write.files.file_plan",
        "foreach_batch": "streaming.foreach_batch",
        "lance_data_source": "datasource",
    },
)
