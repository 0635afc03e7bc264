"""Write Spark DataFrames into Lance tables exactly once, and read them at a version. No Airflow here.

Executors import modules of this package to do their part, so nothing heavy loads until it is used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_lancens.spark.datasource import LanceDataSource, lance_data_source
    from airflow_provider_lancens.spark.delete import delete_rows
    from airflow_provider_lancens.spark.files.fingerprint import fingerprint_files
    from airflow_provider_lancens.spark.files.source import FileSource
    from airflow_provider_lancens.spark.files.writer import write_files
    from airflow_provider_lancens.spark.once import find_write
    from airflow_provider_lancens.spark.options import WriteOptions, WriteResult
    from airflow_provider_lancens.spark.orphans import Orphans, remove_orphans
    from airflow_provider_lancens.spark.reader import read_table
    from airflow_provider_lancens.spark.target import NamespaceSpec
    from airflow_provider_lancens.spark.writer import write_table

__all__ = [
    "FileSource",
    "LanceDataSource",
    "NamespaceSpec",
    "Orphans",
    "WriteOptions",
    "WriteResult",
    "delete_rows",
    "find_write",
    "fingerprint_files",
    "lance_data_source",
    "read_table",
    "remove_orphans",
    "write_files",
    "write_table",
]

_HOMES = {
    "FileSource": "files.source",
    "LanceDataSource": "datasource",
    "NamespaceSpec": "target",
    "Orphans": "orphans",
    "WriteOptions": "options",
    "WriteResult": "options",
    "delete_rows": "delete",
    "find_write": "once",
    "fingerprint_files": "files.fingerprint",
    "lance_data_source": "datasource",
    "read_table": "reader",
    "remove_orphans": "orphans",
    "write_files": "files.writer",
    "write_table": "writer",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
