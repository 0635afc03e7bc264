"""Sensors that wait for Lance tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_lancens._exports import lazy_exports

if TYPE_CHECKING:
    from airflow_provider_lancens.sensors.table_version_sensor import LanceTableVersionSensor

__all__ = [
    "LanceTableVersionSensor",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "LanceTableVersionSensor": "table_version_sensor",
    },
)
