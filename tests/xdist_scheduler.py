"""Distribution of tests over processes: each file is one work unit, or tests that share a costly server.

A metastore serves all processes (`tests/servers/shared.py`). A Spark session, an Airflow home and a process
for DAG runs serve the process that started them, which needs each of them once, whatever the number of its
files. The longest units are run first, so that none delays the end. The other integration tests are mixed:
those of sensors mostly wait, and those of Spark need the CPU.
"""

import zlib
from collections.abc import Sequence
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

_SPARK = "tests/integration/spark"
FOLDERS: Sequence[str] = (
    # Tests with a running Airflow.
    "tests/e2e/running/",
    "tests/e2e/flights/",
    # Tests with their own embedded metastore.
    "tests/integration/embedded/",
    # One Spark Connect server.
    f"{_SPARK}/session/",
    # One YARN cluster.
    f"{_SPARK}/submit/",
)
"""Folders that are one work unit. Elsewhere each file is one."""

MIXED = "tests/integration/"
"""Where waiting and busy tests alternate, by a hash of the unit's name."""

FIRST: Sequence[str] = (
    # A drop compares the locations of all tables of the server, of which there are few at the beginning.
    "tests/conformance/",
    "tests/integration/hive/test_lost_replies.py",
    "tests/e2e/running/",
    f"{_SPARK}/faults/test_lost_executors.py",
    "tests/wheel/",
    "tests/e2e/",
    f"{_SPARK}/faults/",
    MIXED,
)
"""Units that take long, the longest first, but for quick ones; the others follow as they were collected."""


def work_unit_of(file: str) -> str:
    """The work unit of a test file."""
    return next((folder for folder in FOLDERS if file.startswith(folder)), file)


def longest_first(items: list[pytest.Item]) -> None:
    """Sort a process's tests in the order of distribution."""
    items.sort(key=lambda item: place_in_order(work_unit_of(_file(item.nodeid))))


def place_in_order(unit: str) -> tuple[int, int]:
    """What orders the work units: units with the same place keep their order."""
    rank = next((rank for rank, beginning in enumerate(FIRST) if unit.startswith(beginning)), len(FIRST))
    return rank, zlib.crc32(unit.encode()) if unit.startswith(MIXED) else 0


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0]


class ByServer(LoadScopeScheduling):
    """Distributes tests that need one server as one unit."""

    def _split_scope(self, nodeid: str) -> str:
        return work_unit_of(_file(nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByServer:
    """A hook of xdist, called if a run has several processes."""
    return ByServer(config, log)
