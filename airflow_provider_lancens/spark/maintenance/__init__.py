"""Maintenance of Lance tables: compaction and indices on Spark's executors, clean-up of old versions.

No Airflow here. Executors import modules of this package, so nothing heavy loads until it is used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_lancens.spark.maintenance.clean_up import clean_up_versions
    from airflow_provider_lancens.spark.maintenance.compact import compact_table
    from airflow_provider_lancens.spark.maintenance.index import build_index
    from airflow_provider_lancens.spark.maintenance.options import (
        CleanUpResult,
        CompactionOptions,
        CompactionResult,
        IndexResult,
    )

__all__ = [
    "CleanUpResult",
    "CompactionOptions",
    "CompactionResult",
    "IndexResult",
    "build_index",
    "clean_up_versions",
    "compact_table",
]

_HOMES = {
    "CleanUpResult": "options",
    "CompactionOptions": "options",
    "CompactionResult": "options",
    "IndexResult": "options",
    "build_index": "index",
    "clean_up_versions": "clean_up",
    "compact_table": "compact",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
