"""Checks of a connection and of everything that it depends on, as a command and as functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_lancens._exports import lazy_exports

if TYPE_CHECKING:
    from airflow_provider_lancens.doctor.command import diagnose
    from airflow_provider_lancens.doctor.findings import Finding

__all__ = [
    "Finding",
    "diagnose",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "Finding": "findings",
        "diagnose": "command",
    },
)
