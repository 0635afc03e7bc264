"""Triggers of the deferrable sensor and of watched assets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_lancens._exports import lazy_exports

if TYPE_CHECKING:
    from airflow_provider_lancens.triggers.table_advanced_trigger import LanceTableAdvancedTrigger
    from airflow_provider_lancens.triggers.table_version_trigger import (
        LanceAnyTableTrigger,
        LanceTableVersionTrigger,
    )

__all__ = [
    "LanceAnyTableTrigger",
    "LanceTableAdvancedTrigger",
    "LanceTableVersionTrigger",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "LanceAnyTableTrigger": "table_version_trigger",
        "LanceTableAdvancedTrigger": "table_advanced_trigger",
        "LanceTableVersionTrigger": "table_version_trigger",
    },
)
