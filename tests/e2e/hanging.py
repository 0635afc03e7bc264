"""Rows whose Python worker hangs until the task is killed; that of its retry doesn't."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

SMALL = {
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.driver.host": "127.0.0.1",
}


def hanging(spark: Any, marker: str) -> Any:
    """Ten rows; the marker file contains the ids of the worker, its daemon and the JVM."""

    def rows(batches: Iterator[Any]) -> Iterator[Any]:
        import os
        import time
        from pathlib import Path

        if not Path(marker).exists():
            worker, daemon = os.getpid(), os.getppid()
            status = Path(f"/proc/{daemon}/status").read_text()
            jvm = next(line.split()[1] for line in status.splitlines() if line.startswith("PPid:"))
            Path(f"{marker}.new").write_text(f"{worker} {daemon} {jvm}")
            Path(f"{marker}.new").rename(marker)
            time.sleep(600)
        yield from batches

    return spark.range(0, 10, 1, 1).mapInArrow(rows, "id long")
