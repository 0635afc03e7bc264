"""Lance tables as Airflow assets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_lancens._exports import lazy_exports

if TYPE_CHECKING:
    from airflow_provider_lancens.assets.event_records import new_versions
    from airflow_provider_lancens.assets.table import lance_table
    from airflow_provider_lancens.assets.table_watcher import watched_table

__all__ = [
    "lance_table",
    "new_versions",
    "watched_table",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "lance_table": "table",
        "new_versions": "event_records",
        "watched_table": "table_watcher",
    },
)
