"""Verification that a change took effect on the server, after a lost reply or an ambiguous retry."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_provider_lancens.namespace.locations import normalize
from airflow_provider_lancens.namespace.metastore_protocol import CatalogTable, ParameterChange


def table_matches(found: CatalogTable, wanted: CatalogTable) -> bool:
    """Whether a catalog table has everything that was requested, so that its creation took effect."""
    same_place = normalize(found.location or "") == normalize(wanted.location or "")
    return same_place and contains(found.parameters, wanted.parameters)


def contains(parameters: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether the parameters contain all of `wanted`."""
    return wanted.items() <= parameters.items()


def change_applied(table: CatalogTable, change: ParameterChange) -> bool:
    """Whether a change of a catalog table took effect."""
    gone = all(key not in table.parameters for key in change.remove if key not in change.set)
    described = change.columns is None or change.columns == table.columns
    moved = change.location is None or normalize(table.location or "") == normalize(change.location)
    return gone and described and moved and contains(table.parameters, change.set)
