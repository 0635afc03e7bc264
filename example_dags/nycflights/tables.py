"""The three Lance tables, and what is in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nycflights.months import MONTHS

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance_namespace import LanceNamespace

DATABASE = "nyc"
TABLES = {name: f"{DATABASE}${name}" for name in ("flights", "weather", "delays")}


def newest(namespace: LanceNamespace, table: str) -> LanceDataset | None:
    """The table as it is now, None where it isn't declared or nothing was written yet."""
    import lance
    from lance_namespace import DescribeTableRequest
    from lance_namespace.errors import NamespaceNotFoundError, TableNotFoundError

    from airflow_provider_lancens.namespace.storage import latest_version

    try:
        described = namespace.describe_table(DescribeTableRequest(id=table.split("$")))
    except (NamespaceNotFoundError, TableNotFoundError):
        return None
    if latest_version(described.location, described.storage_options or {}) is None:
        return None
    return lance.dataset(namespace_client=namespace, table_id=table.split("$"))


def at_version(namespace: LanceNamespace, table: str, version: int | None) -> LanceDataset | None:
    """The table at a version, None at none."""
    import lance

    if version is None:
        return None
    return lance.dataset(namespace_client=namespace, table_id=table.split("$"), version=version)


def rows_by_month(dataset: LanceDataset | None) -> dict[str, int]:
    """How many rows of each month a table holds, in the months' order."""
    if dataset is None:
        return {}
    months = dataset.to_table(columns=["month"])
    counts = months.group_by("month").aggregate([("month", "count")]).sort_by("month").to_pylist()
    return {MONTHS[row["month"] - 1]: row["month_count"] for row in counts}


def months_done(namespace: LanceNamespace) -> list[str]:
    """The months that went all the way into `delays`."""
    return list(rows_by_month(newest(namespace, TABLES["delays"])))
