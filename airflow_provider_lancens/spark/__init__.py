"""Write Spark DataFrames and files into Lance tables exactly once, and read them at a version.

No Airflow here. Executors import modules of this package, so nothing heavy loads until it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_lancens._exports import lazy_exports

if TYPE_CHECKING:
    from airflow_provider_lancens.spark.bookmarks import (
        Bookmark,
        delete_bookmark,
        find_bookmark,
        list_bookmarks,
        move_bookmark,
    )
    from airflow_provider_lancens.spark.changes.read_changes import read_changes
    from airflow_provider_lancens.spark.commit.delete import delete_rows
    from airflow_provider_lancens.spark.compute.column_task import ColumnFunctionError
    from airflow_provider_lancens.spark.compute.compute_column import compute_column
    from airflow_provider_lancens.spark.datasource import LanceDataSource, lance_data_source
    from airflow_provider_lancens.spark.file_source import FileSource
    from airflow_provider_lancens.spark.lance_catalog import LanceCatalog, connect
    from airflow_provider_lancens.spark.lance_table import Changes, Table
    from airflow_provider_lancens.spark.maintenance.orphans import remove_orphans
    from airflow_provider_lancens.spark.options import TableLayout, WriteIdentity
    from airflow_provider_lancens.spark.publish import discard_version, publish_version
    from airflow_provider_lancens.spark.read import read_table
    from airflow_provider_lancens.spark.release_sets import ReleaseSet, find_release_set, move_release_set
    from airflow_provider_lancens.spark.results import (
        CompactionResult,
        ComputeResult,
        ExpireResult,
        IndexResult,
        MaintenanceResult,
        OrphansResult,
        ReleaseResult,
        RestoreResult,
        SchemaResult,
        StreamResult,
        WriteResult,
    )
    from airflow_provider_lancens.spark.schema import add_columns, alter_columns, drop_columns
    from airflow_provider_lancens.spark.streaming.foreach_batch import foreach_batch
    from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec
    from airflow_provider_lancens.spark.table.version_lookup import find_version
    from airflow_provider_lancens.spark.table_info import IndexInfo, TableStats, Tag, VersionInfo
    from airflow_provider_lancens.spark.write.files.file_plan import fingerprint_files
    from airflow_provider_lancens.spark.write.files.file_writer import write_files
    from airflow_provider_lancens.spark.write.pipeline import (
        accept_lost_keys,
        confirm_write,
        find_write,
        write_table,
    )

__all__ = [
    "Bookmark",
    "Changes",
    "ColumnFunctionError",
    "CompactionResult",
    "ComputeResult",
    "ExpireResult",
    "FileSource",
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
    "VersionInfo",
    "WriteIdentity",
    "WriteResult",
    "accept_lost_keys",
    "add_columns",
    "alter_columns",
    "compute_column",
    "confirm_write",
    "connect",
    "delete_bookmark",
    "delete_rows",
    "discard_version",
    "drop_columns",
    "find_bookmark",
    "find_release_set",
    "find_version",
    "find_write",
    "fingerprint_files",
    "foreach_batch",
    "lance_data_source",
    "list_bookmarks",
    "move_bookmark",
    "move_release_set",
    "publish_version",
    "read_changes",
    "read_table",
    "remove_orphans",
    "write_files",
    "write_table",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "Bookmark": "bookmarks",
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
        "add_columns": "schema",
        "alter_columns": "schema",
        "compute_column": "compute.compute_column",
        "accept_lost_keys": "write.pipeline",
        "confirm_write": "write.pipeline",
        "discard_version": "publish",
        "delete_bookmark": "bookmarks",
        "delete_rows": "commit.delete",
        "drop_columns": "schema",
        "find_bookmark": "bookmarks",
        "find_release_set": "release_sets",
        "find_version": "table.version_lookup",
        "find_write": "write.pipeline",
        "fingerprint_files": "write.files.file_plan",
        "foreach_batch": "streaming.foreach_batch",
        "lance_data_source": "datasource",
        "list_bookmarks": "bookmarks",
        "move_bookmark": "bookmarks",
        "move_release_set": "release_sets",
        "publish_version": "publish",
        "read_changes": "changes.read_changes",
        "read_table": "read",
        "remove_orphans": "maintenance.orphans",
        "write_files": "write.files.file_writer",
        "write_table": "write.pipeline",
    },
)
