"""Current content of the tables, read as by any Lance reader."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from nycflights.months import TIMEZONE
from nycflights.tables import TABLES, newest

if TYPE_CHECKING:
    from lance_namespace import LanceNamespace

FEWEST_DEPARTURES = 10
"""An hour with fewer isn't called bad for one late plane."""


@dataclass(frozen=True, slots=True)
class TableFacts:
    """A table in numbers."""

    name: str
    version: int
    rows: int
    fragments: int
    bytes: int
    location: Path


def table_facts(namespace: LanceNamespace) -> list[TableFacts]:
    """Return the facts of each of the three tables that has data."""
    datasets = {name: newest(namespace, name) for name in TABLES.values()}
    return [
        TableFacts(
            name=name,
            version=dataset.version,
            rows=dataset.count_rows(),
            fragments=len(dataset.get_fragments()),
            bytes=_size(Path(dataset.uri)),
            location=Path(dataset.uri),
        )
        for name, dataset in datasets.items()
        if dataset is not None
    ]


def worst_hours(namespace: LanceNamespace, count: int = 5) -> list[dict[str, Any]]:
    """The hours in which flights left latest on average: rows of `delays`, on New York's clock."""
    delays = newest(namespace, TABLES["delays"])
    if delays is None:
        raise LookupError("the table of delays is still empty")
    busy = delays.to_table(filter=f"flights - cancelled >= {FEWEST_DEPARTURES}")
    worst = busy.sort_by([("mean_dep_delay", "descending")]).slice(0, count).to_pylist()
    return [{**hour, "time_hour": hour["time_hour"].astimezone(ZoneInfo(TIMEZONE))} for hour in worst]


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
