"""What an update of a table's asset carries: the version that it is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import Asset, AssetAlias

from airflow_provider_lancens.assets.table import LanceTable

if TYPE_CHECKING:
    from airflow.sdk import Context


def note_version(
    context: Context, outlets: Sequence[Any], table: LanceTable, version: int, previous_version: int | None
) -> None:
    """Let the updates of a task's outlets carry the version that the task made.

    The outlet that is the table's asset gets ``{"table", "previous_version", "version"}`` as its event's
    extra. To an alias the table's asset is added, so that a task whose table is templated has one too.

    Args:
        context: the task's.
        outlets: the task's; those that are something else are left alone.
        table: which table was written.
        version: the version that it is at now.
        previous_version: the one before, None where there was none.
    """
    extra: Mapping[str, Any] = {
        "table": str(table.table),
        "previous_version": previous_version,
        "version": version,
    }
    for outlet in outlets:
        if isinstance(outlet, AssetAlias):
            context["outlet_events"][outlet].add(Asset(uri=table.uri), extra=dict(extra))
        elif isinstance(outlet, Asset) and outlet.uri == table.uri:
            context["outlet_events"][outlet].extra.update(extra)
