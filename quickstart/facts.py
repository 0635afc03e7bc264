"""Current content of the tables, read as by any Lance reader."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nycflights.tables import TABLES, newest

if TYPE_CHECKING:
    from lance_namespace import LanceNamespace


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


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
