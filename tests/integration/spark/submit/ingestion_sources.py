"""Sources of ingestions, to be imported by the driver's process."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen


def cheap(spark: Any, orders: Any, backwards: str) -> Any:
    """Return the cheap orders; fail if a secret, passed reversed, shows in a process or Spark's UI."""
    secret = backwards[::-1]
    if staging := os.environ.get("SPARK_YARN_STAGING_DIR"):  # the folder that this script was uploaded to
        assert Path(staging.removeprefix("file:")).stat().st_mode & 0o077 == 0
    context = getattr(spark, "sparkContext", None)
    if context and context.uiWebUrl:
        # The data of its page Environment.
        address = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/environment"
        with urlopen(address) as page:
            shown = page.read().decode()
        assert "spark.executor.memory" in shown
        assert secret not in shown

    def rows(batches: Iterator[Any]) -> Iterator[Any]:
        seen = processes_that_show("spark")
        assert len(seen) > 1
        shown = processes_that_show(secret)
        assert not shown, shown
        yield from batches

    found = orders.read(filter="price < 3")
    return found.mapInArrow(rows, found.schema)


def failing(spark: Any) -> Any:
    """Fail."""
    raise ValueError("there is no month 13")


def held(spark: Any, folder: str) -> Any:
    """Ten rows, once the file ``released`` is in the folder; the file ``running`` shows that it waits."""
    Path(folder, "running").touch()
    while not Path(folder, "released").exists():
        time.sleep(0.1)
    return spark.range(0, 10, 1, 1)


def processes_that_show(text: str) -> list[str]:
    """The command lines and environments that contain this text."""
    files = [process / name for process in Path("/proc").glob("[0-9]*") for name in ("cmdline", "environ")]
    return [f"{file}: {_text(file.parent / 'cmdline')[:300]}" for file in files if text in _text(file)]


def _text(file: Path) -> str:
    try:
        return file.read_bytes().decode(errors="replace")
    except OSError:
        return ""  # it has ended, or belongs to another user


def table_of(spark: Any, name: str) -> Any:
    """Return all rows of a table."""
    return spark.table(name)
