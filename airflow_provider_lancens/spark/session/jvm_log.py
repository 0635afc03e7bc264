"""What a session's JVM prints, in this process's log at the level of each line.

Spark logs to the JVM's standard error, and so do its Python workers. Airflow would log all of it as errors.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import threading
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_log = logging.getLogger(__name__)

_LINES = (
    # Spark's default pattern, and that of its structured logs' console.
    re.compile(r"\d\d/\d\d/\d\d \d\d:\d\d:\d\d (?P<level>[A-Z]+) (?P<text>.*)"),
    # Lance's, in a Python worker.
    re.compile(r"\[\d{4}-\d\d-\d\dT[\d:.]+Z (?P<level>[A-Z]+) +(?P<text>.*)"),
    re.compile(r"(?P<level>WARNING): (?P<text>.*)"),
)
_LEVELS = {
    "TRACE": logging.DEBUG,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "WARNING": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
_EXPECTED = (
    "Using Spark's default log4j profile",
    "Setting default log level to",
    "To adjust logging level use",
    "Using incubator modules",
    "Unable to load native-hadoop library",
    "resolves to a loopback address",
    "Set SPARK_LOCAL_IP if you need to bind",
    "it will be created",
    "is not fork-safe",
)
"""Parts of messages at each start or first write that call for no action: logged at level DEBUG."""


class Line(NamedTuple):
    """A line of the JVM's, and its level in Python's logging."""

    level: int
    text: str


@contextlib.contextmanager
def logged_output() -> Iterator[int]:
    """Yield a file descriptor for a child process to inherit; what it writes there is logged."""
    reading, writing = os.pipe()
    thread = threading.Thread(target=_follow, args=(reading,), name="lance-spark-log", daemon=True)
    thread.start()
    try:
        yield writing
    finally:
        os.close(writing)  # the child has its own


def parsed(lines: Iterable[str]) -> Iterator[Line]:
    """Yield lines with their levels; one without, as of a stack trace, has that of the line before."""
    level = logging.INFO
    for line in lines:
        found = next(filter(None, (pattern.match(line) for pattern in _LINES)), None)
        if found:
            level = _LEVELS.get(found["level"], logging.INFO)
        text = found["text"] if found else line
        if text.strip():
            yield Line(logging.DEBUG if any(part in line for part in _EXPECTED) else level, text)


def _follow(descriptor: int) -> None:
    with open(descriptor, encoding="utf-8", errors="replace") as lines:
        for line in parsed(text.rstrip("\n") for text in lines):
            _log.log(line.level, "%s", line.text)
