"""Whether a change stands on the server, asked where its answer was lost or a retry may have met itself."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_provider_lancens.namespace.locations import normalize
from airflow_provider_lancens.namespace.metastore import Change, Table


def says(found: Table, wanted: Table) -> bool:
    """Whether an entry holds all that was asked for: then its creation happened."""
    same_place = normalize(found.location or "") == normalize(wanted.location or "")
    return same_place and holds(found.parameters, wanted.parameters)


def holds(parameters: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether all of `wanted` stand among the parameters."""
    return wanted.items() <= parameters.items()


def stands(parameters: Mapping[str, str], change: Change) -> bool:
    """Whether a change of parameters stands."""
    gone = all(key not in parameters for key in change.remove if key not in change.set)
    return gone and holds(parameters, change.set)
