"""What is loaded is set aside once, so that no collection looks through it on the event loop's time."""

import subprocess
import sys

SCRIPT = """
import gc
from airflow_provider_lancens.triggers.collector import loading, set_aside_what_is_loaded

set_aside_what_is_loaded()
first = gc.get_freeze_count()
with loading():
    assert not gc.isenabled()
    kept = [[number] for number in range(1000)]
assert gc.isenabled()
second = gc.get_freeze_count()
more = [[number] for number in range(1000)]
set_aside_what_is_loaded()
with loading():
    pass
assert first > 1000, first
assert second >= first + 1000, (first, second)
assert gc.get_freeze_count() <= second + 10, (second, gc.get_freeze_count())
"""


def test_what_is_there_and_what_is_loaded_is_set_aside_once_each() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
