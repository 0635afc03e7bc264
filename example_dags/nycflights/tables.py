"""The three Lance tables, and queries of their contents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from nycflights.months import MONTHS, TIMEZONE

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance_namespace import LanceNamespace

DATABASE = "nyc"
FEWEST_DEPARTURES = 10
"""An hour with fewer isn't among the worst for one late plane."""
TABLES = {name: f"{DATABASE}${name}" for name in ("flights", "weather", "delays")}


def newest(namespace: LanceNamespace, table: str) -> LanceDataset | None:
    """Open the newest version of a table; None if it isn't declared or nothing was written yet."""
    import lance
    from lance_namespace import ListTableVersionsRequest
    from lance_namespace.errors import NamespaceNotFoundError, TableNotFoundError

    request = ListTableVersionsRequest(id=table.split("$"), descending=True, limit=1)
    try:
        if not namespace.list_table_versions(request).versions:
            return None
    except (NamespaceNotFoundError, TableNotFoundError):
        return None
    return lance.dataset(namespace_client=namespace, table_id=table.split("$"))


def at_version(namespace: LanceNamespace, table: str, version: int | None) -> LanceDataset | None:
    """Open the table at a version; None without a version."""
    import lance

    if version is None:
        return None
    return lance.dataset(namespace_client=namespace, table_id=table.split("$"), version=version)


def rows_by_month(dataset: LanceDataset | None) -> dict[str, int]:
    """Return the number of a table's rows by month, in order."""
    if dataset is None:
        return {}
    months = dataset.to_table(columns=["month"])
    counts = months.group_by("month").aggregate([("month", "count")]).sort_by("month").to_pylist()
    return {MONTHS[row["month"] - 1]: row["month_count"] for row in counts}


def months_done(namespace: LanceNamespace) -> list[str]:
    """Return the months that have been joined into `delays`."""
    return list(rows_by_month(newest(namespace, TABLES["delays"])))


def worst_hours(delays: LanceDataset, count: int = 5) -> list[dict[str, Any]]:
    """Return the hours in which flights left latest on average, with New York's time."""
    busy = delays.to_table(filter=f"flights - cancelled >= {FEWEST_DEPARTURES}")
    worst = busy.sort_by([("mean_dep_delay", "descending")]).slice(0, count).to_pylist()
    return [{**hour, "time_hour": hour["time_hour"].astimezone(ZoneInfo(TIMEZONE))} for hour in worst]
