"""An asset that is updated when its table advances, regardless of the writer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset

from airflow_provider_lancens.assets.table import LanceTable, asset_fields
from airflow_provider_lancens.provider_info import DEFAULT_CONNECTION

if TYPE_CHECKING:
    from airflow.sdk import Asset as SdkAsset

    from airflow_provider_lancens.identifiers import TableId


def watched_table(
    table: str | TableId,
    lance_conn_id: str = DEFAULT_CONNECTION,
    *,
    asset_authority: str | None = None,
    name: str | None = None,
    group: str | None = None,
    extra: Mapping[str, Any] | None = None,
    poll_interval: float | timedelta = 60.0,
    after_version: int | None = None,
    data_only: bool = True,
) -> SdkAsset:
    """Return the asset of a table that the triggerer updates whenever the table advances.

    A DAG scheduled on it runs for each advance; see `LanceTableAdvancedTrigger` for the content of its events
    and their guarantees. A task that writes to the table then needs no outlet, which would update the asset
    a second time.

    Args:
        table: table identifier, ``database$table``, or a `TableId`, see `lance_table`.
        lance_conn_id: the connection through which the triggerer polls the table.
        asset_authority: the connection's asset authority; by default its id, since the connection isn't read
            while a DAG is parsed.
        name: the asset's name in Airflow, see `lance_table`.
        group: the asset's group in Airflow.
        extra: extra of the asset, without secrets.
        poll_interval: the time between two polls: seconds, at least 1, or a timedelta.
        after_version: when watching begins, ignore versions up to this one. Before Airflow 3.3, watching
            begins at each start of the triggerer.
        data_only: ignore versions that compaction, indexing or configuration created, as
            `LanceTableVersionSensor` does. The triggerer reads the table's transactions from its storage for
            it. False counts every version.

    Raises:
        ValueError: the identifier or `poll_interval` is invalid, an argument is a template, or
            `after_version` isn't a version.
        TypeError: `data_only` is neither True nor False.
    """
    from airflow.sdk import AssetWatcher

    from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
    from airflow_provider_lancens.hooks.template_args import check_flag, parse_version
    from airflow_provider_lancens.triggers.table_advanced_trigger import LanceTableAdvancedTrigger

    named = LanceTable.of(lance_conn_id if asset_authority is None else asset_authority, table)
    try:
        after = parse_version("after_version", after_version)
    except AirflowFailException as error:
        raise ValueError(str(error)) from None
    trigger = LanceTableAdvancedTrigger(
        table=str(named.table),
        lance_conn_id=lance_conn_id,
        cursor=named.uri,
        after_version=after,
        poll_interval=_seconds(poll_interval),
        data_only=check_flag("data_only", data_only),
    )
    return Asset(
        uri=named.uri,
        watchers=[AssetWatcher(name=named.uri, trigger=trigger)],
        **asset_fields(name, group, extra),
    )


def _seconds(interval: object) -> float:
    """Return an interval of polls in seconds, as the triggerer needs it."""
    seconds = interval.total_seconds() if isinstance(interval, timedelta) else interval
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 1 <= seconds < math.inf:
        raise ValueError(
            "poll_interval: expected a finite number of seconds of at least 1, or a timedelta of at least a "
            f"second, got {interval!r}"
        )
    return seconds
