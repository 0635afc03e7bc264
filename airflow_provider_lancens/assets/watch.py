"""An asset that hears of its table's advances by itself, whoever writes to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.providers.common.compat.sdk import Asset

from airflow_provider_lancens.assets.table import LanceTable

if TYPE_CHECKING:
    from airflow.sdk import Asset as SdkAsset


def watched_table(
    table: str, lance_conn_id: str, *, poll_interval: float = 60.0, after_version: int | None = None
) -> SdkAsset:
    """The asset of a table, updated by the triggerer whenever the table has advanced.

    A DAG that is scheduled on it runs for each advance; what it is told, and what is promised, stands at
    `LanceTableAdvancedTrigger`. A task that writes to the table needs no outlet then: it would update the
    asset twice.

    Args:
        table: the table's identifier, ``database$table``.
        lance_conn_id: the Airflow connection.
        poll_interval: seconds between two looks.
        after_version: versions up to this one are no news when the watch begins.

    Raises:
        ValueError: no table can be called so, or an argument is a template.
    """
    from airflow.sdk import AssetWatcher

    from airflow_provider_lancens.triggers.table_advanced import LanceTableAdvancedTrigger

    named = LanceTable.of(lance_conn_id, table)
    trigger = LanceTableAdvancedTrigger(
        table=str(named.table),
        lance_conn_id=lance_conn_id,
        cursor=named.uri,
        after_version=after_version,
        poll_interval=poll_interval,
    )
    return Asset(uri=named.uri, watchers=[AssetWatcher(name=named.uri, trigger=trigger)])
