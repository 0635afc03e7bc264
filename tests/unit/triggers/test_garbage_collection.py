"""Loaded objects are excluded from garbage collection once, to keep the event loop responsive."""

import subprocess
import sys

SCRIPT = """
import gc
from airflow_provider_lancens.triggers.worker_threads import (
    exclude_loaded_objects_from_gc,
    importing_without_gc,
)

exclude_loaded_objects_from_gc()
first = gc.get_freeze_count()
with importing_without_gc():
    assert not gc.isenabled()
    kept = [[number] for number in range(1000)]
assert gc.isenabled()
second = gc.get_freeze_count()
more = [[number] for number in range(1000)]
exclude_loaded_objects_from_gc()
with importing_without_gc():
    pass
assert first > 1000, first
assert second >= first + 1000, (first, second)
assert gc.get_freeze_count() <= second + 10, (second, gc.get_freeze_count())
"""


def test_existing_and_loaded_objects_are_frozen_once_each() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
