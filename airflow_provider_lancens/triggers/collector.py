"""Keeping Python's garbage collector from holding up an event loop.

A thread that works gives the event loop its turn every few milliseconds. A full collection doesn't: it looks
through every object of the process in one go, a tenth of a second and more for what Airflow and the
libraries of a metastore have loaded, and as waits come by the thousand it does so several times.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache


@cache
def set_aside_what_is_loaded() -> None:
    """Let collections pass over all objects that there are by now: modules, classes and functions above all.

    Once in a process and no more: what lies in a cycle at that moment is never collected, so that doing it
    again and again would leak. Whatever goes with its last reference goes as ever.
    """
    gc.freeze()


@contextmanager
def loading() -> Iterator[None]:
    """Keep the collector out of a stretch that loads libraries, and set aside what they made; once, too."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        _set_aside_the_libraries()
        if was_enabled:
            gc.enable()


@cache
def _set_aside_the_libraries() -> None:
    gc.freeze()
