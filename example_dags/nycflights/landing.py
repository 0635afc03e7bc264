"""Landing of a month's raw data for Spark: one Parquet file per table and month."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

from nycflights.source import read_month


def land(table: str, month: str, folder: Path) -> Path:
    """Write one month of a table below `folder`; readers see the complete file or none."""
    file = folder / table / f"{month}.parquet"
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(f".{uuid4().hex}")
    read_month(table, month).to_parquet(unfinished, index=False)
    unfinished.replace(file)
    return file
