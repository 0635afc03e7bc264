"""Tables whose changes are read."""

from collections.abc import Callable
from typing import Any

from airflow_provider_lancens.spark import (
    TableLayout,
)
from tests.support.maintained_tables import Maintained, rows

Changes = Callable[..., list[tuple[Any, ...]]]


STABLE = TableLayout(stable_row_ids=True)


def start(table: Maintained, options: TableLayout | None = STABLE) -> None:
    """Write version 1: the rows 0 to 5 in two files."""
    table.write(rows(table.spark, 0, 6, 2), options=options)


def upsert(table: Maintained, words: dict[int, str]) -> None:
    frame = table.spark.createDataFrame(list(words.items()), "id long, word string")
    table.write(frame, mode="upsert", on=["id"])
