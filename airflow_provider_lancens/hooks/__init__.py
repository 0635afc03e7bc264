"""Hooks: Airflow connections to Lance namespaces, and the errors that they raise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_lancens._exports import lazy_exports

if TYPE_CHECKING:
    from airflow_provider_lancens.hooks.airflow_errors import LanceRetryableError
    from airflow_provider_lancens.hooks.catalog_hook import LanceCatalogHook
    from airflow_provider_lancens.hooks.glue import LanceGlueHook
    from airflow_provider_lancens.hooks.hive import LanceHive2Hook, LanceHive3Hook
    from airflow_provider_lancens.hooks.lance_hook import LanceHook
    from airflow_provider_lancens.hooks.sql import LanceSqlHook

__all__ = [
    "LanceCatalogHook",
    "LanceGlueHook",
    "LanceHive2Hook",
    "LanceHive3Hook",
    "LanceHook",
    "LanceRetryableError",
    "LanceSqlHook",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "LanceCatalogHook": "catalog_hook",
        "LanceGlueHook": "glue",
        "LanceHive2Hook": "hive",
        "LanceHive3Hook": "hive",
        "LanceHook": "lance_hook",
        "LanceRetryableError": "airflow_errors",
        "LanceSqlHook": "sql",
    },
)
