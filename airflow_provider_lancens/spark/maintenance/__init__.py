"""Maintenance of Lance tables: compaction and indices on Spark's executors, clean-up of old versions.

No Airflow here. Executors import modules of this package, so nothing heavy loads until it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_lancens._exports import lazy_exports

if TYPE_CHECKING:
    from airflow_provider_lancens.spark.maintenance.clean_up import clean_up_versions
    from airflow_provider_lancens.spark.maintenance.compact import compact_table
    from airflow_provider_lancens.spark.maintenance.index import build_index
    from airflow_provider_lancens.spark.maintenance.index_recall import measure_recall
    from airflow_provider_lancens.spark.maintenance.maintain import maintain_table
    from airflow_provider_lancens.spark.maintenance.maintenance_options import (
        CompactionOptions,
        IndexSpec,
        MaintenancePlan,
        Thresholds,
    )
    from airflow_provider_lancens.spark.maintenance.restore import check_files, restore_version

__all__ = [
    "CompactionOptions",
    "IndexSpec",
    "MaintenancePlan",
    "Thresholds",
    "build_index",
    "check_files",
    "clean_up_versions",
    "compact_table",
    "maintain_table",
    "measure_recall",
    "restore_version",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "CompactionOptions": "maintenance_options",
        "IndexSpec": "maintenance_options",
        "MaintenancePlan": "maintenance_options",
        "Thresholds": "maintenance_options",
        "build_index": "index",
        "check_files": "restore",
        "clean_up_versions": "clean_up",
        "compact_table": "compact",
        "maintain_table": "maintain",
        "measure_recall": "index_recall",
        "restore_version": "restore",
    },
)
