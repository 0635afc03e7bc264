"""Where a month's raw data lands before Spark takes it: one Parquet file a table and month."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

from nycflights.source import read_month


def land(table: str, month: str, folder: Path) -> Path:
    """Write one month of a table below `folder`; a reader sees the whole file or none."""
    file = folder / table / f"{month}.parquet"
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(f".{uuid4().hex}")
    read_month(table, month).to_parquet(unfinished, index=False)
    unfinished.replace(file)
    return file
