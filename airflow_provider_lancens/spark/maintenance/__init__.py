"""Maintenance of Lance tables: compaction and indices on Spark's executors, clean-up of old versions.

No Airflow here. Executors import modules of this package, so nothing heavy loads until it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_lancens._exports import lazy_exports

if TYPE_CHECKING:
    from airflow_provider_lancens.spark.maintenance.index_recall import measure_recall
    from airflow_provider_lancens.spark.maintenance.maintenance_options import (
        CompactionOptions,
        IndexSpec,
        Thresholds,
    )

__all__ = [
    "CompactionOptions",
    "IndexSpec",
    "Thresholds",
    "measure_recall",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "CompactionOptions": "maintenance_options",
        "IndexSpec": "maintenance_options",
        "Thresholds": "maintenance_options",
        "measure_recall": "index_recall",
    },
)
